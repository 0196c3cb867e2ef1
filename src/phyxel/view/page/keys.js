/** All keys and gestures, in one place: the page listens to them, the help sheet tells them. */
import { TOOLS } from "phyxel/tools.js";

/** The axis along which each of the camera's `VIEWS` looks. */
export const VIEW_KEYS = { front: "Z", side: "X", top: "Y" };

/** [{keys: as events name them, shown: as people do, text: what it does, press}]; without text: not in the help. */
export function keys(view) {
  const ask = (what) => () => view.source.send(what);
  const saved = view.scene.mode === "saved";
  const turn = (key, dx, dy) => ({ keys: [key], press: () => view.camera?.orbit(dx, dy) });
  const world = [
    { keys: ["r"], shown: "R", text: "Restart with the materials as set", press: ask("restart") },
    { keys: ["⇧R"], shown: "⇧ R", text: "Reset to the scene as opened", press: ask("reset") },
    { keys: [], shown: "Ctrl Z", text: "Undo what was done last" },
    { keys: ["d"], shown: "D", text: "Drop all bodies", press: ask("drop") },
    ...TOOLS.map(({ name, text }, k) => ({
      keys: [`${k + 1}`], shown: `${k + 1}`, text, press: () => view.live && view.hands.choose(name) })),
    { keys: ["o"], shown: "O", text: "Always look around, on and off", press: () => view.live && view.toggleOrbit() },
    { keys: ["p"], shown: "P", text: "Pin what is held where it is", press: () => view.hands.pinHeld() },
  ];
  return [
    { keys: [" "], shown: "space", text: "Pause and go on", press: () => view.timeline.toggle() },
    { keys: ["."], shown: ".", text: "One step", press: () => view.timeline.step.click() },
    ...(saved ? [] : world),
    { keys: ["l"], shown: "L", text: "Loop a recording", press: () => view.timeline.loop.click() },
    { keys: ["f"], shown: "F", text: "Frame all bodies", press: () => view.look() },
    { keys: ["⇧F"], shown: "⇧ F", text: "Frame the body in the panels",
      press: () => view.look(null, view.panels.body?.name) },
    ...Object.entries(VIEW_KEYS).map(([name, key]) => ({
      keys: [key.toLowerCase()], shown: key, text: `Look from the ${name}`, press: () => view.look(name) })),
    { keys: ["i"], shown: "I", text: "Save a picture", press: () => view.film.photo.click() },
    { keys: ["v"], shown: "V", text: "Record a video, and save it", press: () => view.film.record.click() },
    { keys: ["t"], shown: "T", text: "Show or hide the panels", press: () => view.togglePanels() },
    { keys: ["h", "?"], shown: "H", text: "This sheet", press: () => view.help.toggle() },
    { keys: ["escape"], press: () => view.hands.finish(true) },
    turn("arrowleft", -30, 0), turn("arrowright", 30, 0), turn("arrowup", 0, -30), turn("arrowdown", 0, 30),
    { keys: ["+", "="], press: () => view.camera?.glide(1.25) },
    { keys: ["-"], press: () => view.camera?.glide(0.8) },
  ];
}

export function gestures(view) {
  const look = [
    ["drag beside", "Look around; Alt or O: anywhere"],
    ["right drag", "Pan; also middle drag and ⇧ drag"],
    ["wheel", "Zoom toward the pointer"],
    ["two fingers", "Look around and zoom; three: pan"],
    ["arrows + −", "Look around and zoom by keys"],
  ];
  if (view.scene.mode === "saved") return look;
  return [["drag a body", "Pull it; let go and it keeps its speed"],
    ["wheel, Alt", "While you hold it: turn it; so does a second finger"],
    ["double click", "Pin that spot; on a pin: unpin"],
    ...look];
}
