/** Pictures and videos of what the canvas shows, without the panels. */
import { button } from "phyxel/controls.js";
import { download, make } from "phyxel/elements.js";

const RATE = 30; // pictures a second, at most
const BITS = 0.2; // for a pixel of a picture: smooth shades stay smooth
const KINDS = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm", "video/mp4"]; // the first it can write

const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

export class Film {
  /** `view` is the page: {canvas, stage, camera, marks, scene, status, touch()}. */
  constructor(view) {
    this.view = view;
    this.photo = button({ id: "photo", look: "photo", key: "I",
      tip: "Save a picture of what you see, without the panels", press: () => this.shoot() });
    this.record = button({ id: "film", look: "film", key: "V",
      tip: "Record a video of what you see; press again to save it", press: () => this.toggle() });
    this.clock = make("output", { id: "filming", hidden: true, tip: "How long the video is until now" });
  }

  get name() {
    return this.view.scene.name || "phyxel";
  }

  async shoot() {
    const { stage, camera, marks } = this.view;
    if (!camera) return;
    const blob = await stage.photograph(camera, marks);
    if (blob) download({ name: `${this.name}.png`, blob });
    else this.view.status.notice("The picture is too large for this browser: make the window smaller", "error");
  }

  toggle() {
    if (this.recorder) this.recorder.stop();
    else this.begin();
  }

  begin() {
    const { canvas, status } = this.view;
    const able = globalThis.MediaRecorder && canvas.captureStream;
    const type = able && KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
    if (!type) {
      status.notice("This browser records no videos: take a current Chrome, Edge, Firefox or Safari, or save what "
        + "moves as HTML", "error");
      return;
    }
    const pieces = [], videoBitsPerSecond = BITS * RATE * canvas.width * canvas.height;
    this.recorder = new MediaRecorder(canvas.captureStream(RATE), { mimeType: type, videoBitsPerSecond });
    this.recorder.ondataavailable = ({ data }) => pieces.push(data);
    this.recorder.onerror = ({ error }) => status.notice(`The video ends here: ${error?.message ?? "?"}`, "error");
    this.recorder.onstop = () => this.end(new Blob(pieces, { type }));
    this.recorder.start(1000);
    this.began = performance.now();
    this.timer = setInterval(() => this.tell(), 250);
    this.tell();
    this.view.touch(); // what stands still is filmed, too
  }

  end(blob) {
    clearInterval(this.timer);
    for (const track of this.recorder.stream.getTracks()) track.stop();
    this.recorder = null;
    this.tell();
    if (blob.size) download({ name: `${this.name}.${blob.type.includes("mp4") ? "mp4" : "webm"}`, blob });
  }

  tell() {
    this.clock.hidden = !this.recorder;
    this.clock.textContent = `● ${minutes((performance.now() - this.began) / 1000)}`;
    this.record.setAttribute("aria-pressed", String(Boolean(this.recorder)));
  }
}
