/* What a section of the page carries, taken apart when it is first asked for: weights in one byte each, 255 being the
   largest of their row, after the largest of every row as float32. */
"use strict";

const WARM = 256e6; // letters of packed weights: up to here all layers are unpacked while nothing else is to do

/** Base64 of deflated bytes, as they are in the page. */
const unpack = async (text) => {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
};

class Data {
  constructor(root) {
    this.packed = {};
    for (const holder of root.querySelectorAll("script[data-of]")) this.packed[holder.dataset.of] = holder;
    this.view = JSON.parse(this.packed.view.textContent);
    this.found = {}; // by key: the promise of what was unpacked
  }

  bytes(key) {
    this.found[key] ??= unpack(this.packed[key].textContent).finally(() => this.packed[key].remove());
    return this.found[key];
  }

  /** The heads of a map, or of what is kept under another key with the same sides. */
  async heads(map, key = map.key) {
    const [asking, answering] = [this.view.sides[map.asking], this.view.sides[map.answering]];
    const [rows, columns] = [asking.labels.length, answering.labels.length];
    const buffer = await this.bytes(key);
    const heads = buffer.byteLength / (rows * (4 + columns));
    const largest = new Float32Array(buffer, 0, heads * rows);
    const bytes = new Uint8Array(buffer, 4 * heads * rows);
    return Array.from({ length: heads }, (_, head) => ({
      rows,
      columns,
      asking,
      answering,
      largest: largest.subarray(head * rows, (head + 1) * rows),
      bytes: bytes.subarray(head * rows * columns, (head + 1) * rows * columns),
    }));
  }

  /** The image in grey as a canvas, to draw upon, with the coloured one beside it; null if there is none. */
  async image() {
    if (!this.view.image) return null;
    const [high, wide] = this.view.image;
    const pixels = new Uint8Array(await this.bytes("image"));
    const canvas = (pixel, values) => {
      const made = make("canvas", { width: wide, height: high, ...values });
      const image = new ImageData(wide, high);
      for (let n = 0; n < wide * high; n++) image.data.set([...pixel(...pixels.subarray(3 * n, 3 * n + 3)), 255], 4 * n);
      made.getContext("2d").putImageData(image, 0, 0);
      return made;
    };
    const grey = canvas((red, green, blue) => Array(3).fill(0.3 * red + 0.59 * green + 0.11 * blue));
    grey.coloured = canvas((...pixel) => pixel, { role: "img", class: "coloured", "aria-label": "The image as it is" });
    return grey;
  }

  /** Unpacks the weights of all layers, one after the other, so that nobody waits for them later. */
  async warm() {
    const waiting = Object.keys(this.packed).filter((key) => key.startsWith("map "));
    if (waiting.reduce((sum, key) => sum + this.packed[key].textContent.length, 0) > WARM) return;
    for (const key of waiting) {
      await new Promise((go) => setTimeout(go, 20));
      await this.bytes(key);
    }
  }
}

/** The mean of the heads of a layer, kept as a head is. */
const meanOf = (heads) => {
  const { rows, columns } = heads[0];
  const shown = { ...heads[0], largest: new Float32Array(rows), bytes: new Uint8Array(rows * columns) };
  const sums = new Float32Array(columns);
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (const head of heads) {
      const scale = head.largest[row] / 255 / heads.length;
      for (let column = 0; column < columns; column++) sums[column] += head.bytes[row * columns + column] * scale;
    }
    const most = (shown.largest[row] = sums.reduce((a, b) => Math.max(a, b), 0));
    if (most > 0) shown.bytes.set(sums.map((sum) => Math.round((255 * sum) / most)), row * columns);
  }
  return shown;
};
