/** Files that are dropped onto the page, or chosen by its button: a scene begins, a scan is set down in the world. */
import { button } from "phyxel/controls.js";
import { make } from "phyxel/elements.js";

const PIECE = 60000; // [bytes] sent at once
const WAITING = 1 << 20; // [bytes] that may wait in the connection
const TAKES = ".toml,.ply,.obj,.stl,.xyz,.gltf,.glb,.usd,.usda,.usdc,.usdz,.mtl,.bin,.png,.jpg,.jpeg";

const pause = (time) => new Promise((done) => setTimeout(done, time));

export class Files {
  constructor(view) {
    this.view = view;
    this.input = make("input", { id: "file", type: "file", multiple: true, accept: TAKES, hidden: true });
    this.button = button({ id: "open", look: "open", press: () => this.input.click(),
      tip: "Open a scan, which is set down here, or a scene; or drop files onto the page" });
    this.input.addEventListener("change", () => this.send([...this.input.files]));
    const over = (on) => document.body.classList.toggle("dropping", on);
    addEventListener("dragover", (event) => {
      event.preventDefault();
      over(view.live && [...event.dataTransfer.types].includes("Files"));
    });
    addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
    addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      if (view.live) this.send([...event.dataTransfer.files]);
    });
  }

  /** Send files to the world, piece by piece. */
  async send(files) {
    const { status, source } = this.view, { socket } = source;
    this.input.value = "";
    if (!files.length || this.sending) return;
    this.sending = true;
    const total = files.reduce((sum, { size }) => sum + size, 0), names = files.map(({ name }) => name).join(", ");
    status.busy({ text: `sending ${names} ...` }, () => (this.sending = false));
    try {
      source.send("upload", { files: files.map(({ name, size }) => ({ name, size })) });
      await this.pieces(files, socket, (done) => status.progress({ text: "", done, most: total }));
    } catch (error) {
      status.notice(`${names}: could not be sent (${error.message})`, "error");
    }
    this.sending = false;
    status.ready();
  }

  async pieces(files, socket, progress) {
    let done = 0;
    for (const file of files) {
      for (let at = 0; at < file.size; at += PIECE) {
        while (socket.bufferedAmount > WAITING) await pause(5);
        const piece = await file.slice(at, at + PIECE).arrayBuffer();
        if (!this.sending) return;
        if (socket.readyState !== WebSocket.OPEN) throw new Error("no connection");
        socket.send(piece);
        progress((done += piece.byteLength));
      }
    }
  }
}
