/** One small note beside whatever has `data-tip`, shown when the pointer rests there or the keyboard comes by. */
import { make } from "phyxel/elements.js";

const REST = 450;

export function startTips() {
  const note = make("div", { id: "tip", role: "tooltip", hidden: true });
  document.body.append(note);
  let timer = 0;
  const hide = () => {
    clearTimeout(timer);
    note.hidden = true;
  };
  const soon = (event) => {
    const owner = event.target.closest?.("[data-tip]");
    hide();
    if (owner && event.pointerType !== "touch") timer = setTimeout(() => show(note, owner), REST);
  };
  addEventListener("pointerover", soon);
  addEventListener("focusin", (event) => event.target.matches(":focus-visible") && soon(event));
  for (const end of ["pointerdown", "focusout", "keydown", "wheel"]) addEventListener(end, hide, { passive: true });
}

function show(note, owner) {
  if (!owner.isConnected) return;
  note.textContent = owner.dataset.tip;
  if (owner.dataset.key) note.append(" ", make("kbd", {}, owner.dataset.key));
  note.hidden = false;
  const there = owner.getBoundingClientRect();
  const own = note.getBoundingClientRect();
  const below = there.bottom + 8 + own.height < innerHeight;
  const left = Math.min(Math.max(there.left + there.width / 2 - own.width / 2, 8), innerWidth - own.width - 8);
  note.style.left = `${left}px`;
  note.style.top = `${below ? there.bottom + 8 : there.top - own.height - 8}px`;
}
