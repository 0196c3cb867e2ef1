/** Undo: a button that says what it takes back, and Ctrl+Z. */
import { button } from "phyxel/controls.js";
import { describe } from "phyxel/elements.js";

export class Undo {
  constructor(view) {
    this.view = view;
    this.button = button({ id: "undo", look: "undo", key: "Ctrl Z", tip: "", press: () => this.ask() });
    this.button.setAttribute("aria-label", "Undo");
    this.set(null);
    addEventListener("keydown", (event) => {
      const asked = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (!asked || !view.live || event.target.matches?.("input[type=text]")) return;
      event.preventDefault();
      this.ask();
    });
  }

  ask() {
    if (this.deed) this.view.source.send("undo");
  }

  /** What would be undone, in words; none: there is nothing. */
  set(deed) {
    this.deed = deed;
    this.button.disabled = !deed;
    describe(this.button, deed ? `Undo ${deed}` : "Nothing was done yet that could be undone");
  }
}
