/** Messages of the world as the page reads them: one binary message is one moment. */

/**
 * A frame from a message: u32 length of the JSON, the JSON, blobs (see `view/encode.py`). Blobs are views into the
 * message, not copies. Those with a key are put into `kept`, from which those that no part names any more go.
 */
export function decode(buffer, kept) {
  const length = new DataView(buffer).getUint32(0, true);
  const content = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const bytes = ([offset, size]) => new Uint8Array(buffer, offset, size);
  // A kept blob outlives its message: a copy, or it would hold on to all of it.
  for (const [key, place] of Object.entries(content.kept ?? {})) kept.set(key, bytes(place).slice());
  const named = new Set();
  const blob = (place) => {
    if (typeof place !== "string") return bytes(place);
    named.add(place);
    if (!kept.has(place)) throw new Error(`the message names a blob that was never sent: ${place}`);
    return kept.get(place);
  };
  const parts = content.parts.map((part) => {
    const entries = Object.entries(part.blobs);
    const keys = Object.fromEntries(entries.map(([name, place]) => [name, typeof place === "string" ? place : null]));
    return { ...part, blobs: Object.fromEntries(entries.map(([name, place]) => [name, blob(place)])), keys };
  });
  for (const key of kept.keys()) if (!named.has(key)) kept.delete(key);
  return { about: content.about, parts };
}
