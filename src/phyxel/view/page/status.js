/** What is said about the state of things: connection and pace, notices, what is being made, what went wrong. */
import { busyCard } from "phyxel/busy.js";
import { button } from "phyxel/controls.js";
import { make } from "phyxel/elements.js";
import { digits } from "phyxel/quantities.js";

const STAYS = { info: 4000, warning: 8000, error: 10000 }; // [ms] that a notice stays
const MOST = 4; // notices at once
const STATES = {
  connecting: "connecting …", open: "live", lost: "no connection, trying again …", saved: "recording",
};

export class Status {
  constructor(view) {
    this.view = view;
    this.dot = make("span", { class: "dot" });
    this.state = make("span", { id: "connection", tip: "Whether this page hears from the world" }, STATES.connecting);
    this.name = make("strong", { id: "name" });
    this.pace = make("span", { id: "pace",
      tip: "How fast the world goes over what is asked for; below 1 this machine needs longer than there is time" });
    this.updates = make("span", { id: "updates", tip: "Pictures of the world that are sent in a second" });
    this.pages = make("span", { id: "pages", tip: "Pages that watch this world, each with its own hand" });
    this.remedies = make("span", { id: "remedies" });
    const named = make("span", { class: "named" }, this.dot, this.name);
    this.element = make("div", { id: "status", role: "status" }, named, this.updates, this.pages, this.state,
      this.pace, this.remedies);
    this.toasts = make("div", { id: "notices", "aria-live": "polite" });
    this.overlay = make("div", { id: "overlay", hidden: true });
    this.progress = () => {}; // how far it is that the world is busy with
    this.connected("connecting");
  }

  connected(state) {
    this.dot.dataset.state = state;
    this.state.textContent = STATES[state] ?? state;
    this.state.hidden = state === "open";
    document.documentElement.dataset.connection = state;
  }

  named(scene) {
    this.name.textContent = scene.title || scene.name || "";
    document.title = scene.name ? `${scene.name} · Phyxel` : "Phyxel";
  }

  /** What would let the machine keep up, as buttons. */
  offer(remedies) {
    const told = JSON.stringify(remedies);
    if (told === this.offered) return;
    this.offered = told;
    this.remedies.replaceChildren(...remedies.map(({ name, text, tip }) => button({ id: `ease_${name}`, text, tip,
      press: () => this.view.source.send("ease", { remedy: name }) })));
  }

  set({ pace, updates, pages, remedies = [] }) {
    const { paused, speed = 1 } = this.view.scene;
    const slow = pace !== undefined && pace !== null && pace < 0.95 && !paused;
    this.pace.hidden = !slow;
    this.offer(slow ? remedies : []);
    const share = digits(Number((pace * speed).toPrecision(2)));
    if (slow) this.pace.textContent = `${share}× real time: this machine cannot keep up`;
    this.updates.textContent = paused ? "paused" : updates ? `${Math.round(updates)}/s` : "";
    this.pages.hidden = !(pages > 1);
    this.pages.textContent = `${pages} pages`;
  }

  /** What is said again is said once, and stays for longer. */
  notice(text, level = "info") {
    for (const toast of [...this.toasts.children]) if (toast.firstChild.textContent === text) toast.remove();
    const role = level === "error" ? "alert" : null;
    const toast = make("div", { class: `toast ${level}`, role }, make("span", {}, text),
      button({ look: "close", tip: "Close this notice", press: () => toast.remove() }));
    this.toasts.append(toast);
    while (this.toasts.children.length > MOST) this.toasts.firstChild.remove();
    setTimeout(() => toast.remove(), STAYS[level] ?? STAYS.info);
  }

  /** `cancel` ends it; that of the world is asked for over the connection. */
  busy({ text, ends }, cancel = ends && (() => this.view.source.send("cancel"))) {
    const { card, set } = busyCard(text || "One moment …", cancel);
    this.progress = set;
    this.say("busy", ...card);
  }

  blown(text) {
    const { source, scene } = this.view;
    const again = (id, look, words, tip) => button({ id: `blown_${id}`, look, text: words, tip, press: () => {
      source.send(id);
      this.hide();
    } });
    this.say("blown", make("h2", {}, source.live ? "The world blew up" : "This does not play"), make("p", {}, text),
      source.live && scene.mode !== "run" ? make("div", { class: "buttons" },
        again("undo", "undo", "Undo", "Go back to before what was done last"),
        again("restart", "restart", "Restart", "Begin again with the materials as they are set now"),
        again("reset", "reset", "Reset", "Begin again exactly as the scene was opened")) : null);
  }

  /** Nothing can be shown at all. */
  refuse(title, text) {
    this.say("blown", make("h2", {}, title), make("p", {}, text));
  }

  say(kind, ...content) {
    this.overlay.className = kind;
    this.overlay.replaceChildren(make("div", { class: "card" }, ...content));
    this.overlay.hidden = false;
  }

  /** Nobody waits any longer; what went wrong stays said. */
  ready() {
    if (this.overlay.className === "busy") this.hide();
  }

  hide() {
    this.overlay.hidden = true;
    this.overlay.replaceChildren();
  }
}

/** All keys and gestures on one sheet. */
export class Help {
  constructor(keys, gestures) {
    const rows = (list) => list.map(([what, text]) => make("div", {}, make("dt", {}, ...[what].flat().map(
      (key) => make("kbd", {}, key))), make("dd", {}, text)));
    this.element = make("dialog", { id: "help_sheet", "aria-label": "Help" },
      make("header", {}, make("h2", {}, "Hands and keys"),
        button({ id: "help_close", look: "close", tip: "Close this sheet", press: () => this.toggle() })),
      make("div", { class: "sheet" }, make("dl", {}, ...rows(gestures)), make("dl", {}, ...rows(keys))));
    this.element.addEventListener("click", (event) => event.target === this.element && this.element.close());
  }

  toggle() {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}
