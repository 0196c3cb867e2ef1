/** What the world is busy with, over the picture: said in words, with how far it is, and a button that ends it. */
import { button } from "phyxel/controls.js";
import { make } from "phyxel/elements.js";

const PATIENCE = 150; // [ms] until a deed that the world has not heard of is told of here
const DEEDS = { cut: "cutting", melt: "melting", solidify: "solidifying", drop: "dropping", restart: "restarting",
  reset: "resetting", model: "changing the model", preset: "changing the material", undo: "undoing", ease: "easing" };

/** A world that is busy may hear late of what it is asked for: meanwhile the page itself says what it waits for. */
export class Unheard {
  constructor(status) {
    Object.assign(this, { status, last: null });
  }

  /** Something was asked for by the command of this number. */
  asked(what, n) {
    if (DEEDS[what]) this.last = { what, n, at: performance.now() };
  }

  /** Called often, with the number of the last command that the world has heard. */
  look(heard) {
    if (!this.last) return;
    if (heard >= this.last.n) this.forget();
    else if (performance.now() - this.last.at > PATIENCE && this.status.overlay.hidden) {
      this.status.busy({ text: `${DEEDS[this.last.what]} ...`, ends: true });
    }
  }

  forget() {
    this.last = null;
    this.status.ready();
  }
}

/** `cancel()` is asked for by the button; without it there is none. */
export function busyCard(text, cancel) {
  const step = make("small", { id: "busy_step" }), bar = make("progress", { id: "busy_bar", hidden: true, max: 1 });
  const end = cancel && button({ id: "cancel", look: "close", text: "Cancel",
    tip: "End this: the world is put back as it was before", press: () => {
      end.disabled = true;
      cancel();
    } });
  const card = [make("div", { class: "spinner" }), make("div", { class: "said" }, make("p", {}, text), step, bar), end];
  /** How far it is. */
  const set = ({ text: said, done, most }) => {
    step.textContent = said;
    bar.hidden = !(most > 0);
    if (most > 0) bar.value = done / most;
  };
  return { card, set };
}
