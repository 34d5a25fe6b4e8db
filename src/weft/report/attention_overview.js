/* The overview of the attention page: a small copy of every head of a part, a row for each layer. One of them is chosen,
   by mouse or arrow keys. */
"use strict";

class Overview {
  constructor(root, data, choose) {
    Object.assign(this, { root, data, choose });
    this.element = make("div", { class: "overview", role: "radiogroup", "aria-label": "Layer and head" });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  /** Draws the maps of a part, if they are not there yet, and marks what is chosen. */
  show(layers, { part, layer, head, what }) {
    if (this.part !== part) {
      this.part = part;
      this.element.replaceChildren(...layers.map((map, number) => this.row(map, number)));
      this.paint();
    }
    this.buttons = [...this.element.querySelectorAll("button")];
    for (const button of this.buttons) {
      const chosen = +button.dataset.layer === layer && +button.dataset.head === head;
      button.setAttribute("aria-checked", chosen);
      button.tabIndex = chosen ? 0 : -1;
      button.classList.toggle("among", what === "rollout" || (what === "mean" && +button.dataset.layer === layer));
    }
  }

  row(map, layer) {
    const heads = Array.from({ length: map.heads }, (_, head) => {
      const told = { "aria-label": `layer ${layer + 1}, head ${head + 1}`, title: `${map.name}, head ${head + 1}` };
      const onclick = () => this.choose({ layer, head, what: "head" });
      const values = { type: "button", role: "radio", "data-layer": layer, "data-head": head, ...told, onclick };
      return make("button", values, make("canvas"));
    });
    return make("div", { class: "layer" }, make("span", { "aria-hidden": "true" }, layer + 1), ...heads);
  }

  /** The small copies, in the colours of the page; square roots, so that small weights are seen. */
  async paint() {
    const small = new Uint8Array(await this.data.bytes("small"));
    const accent = colour(this.root, "--accent");
    const canvases = [...this.element.querySelectorAll("canvas")];
    let start = 0;
    for (const map of this.data.view.maps) {
      const [high, wide] = map.small;
      for (let head = 0; head < map.heads; head++, start += high * wide) {
        if (map.part !== this.part) continue;
        const from = start;
        tinted(canvases.shift(), wide, high, accent, (cell) => Math.round(Math.sqrt(255 * small[from + cell])));
      }
    }
  }

  /** Left and right walk through the heads, up and down through the layers. */
  key(event) {
    const [layer, head] = [+event.target.dataset.layer, +event.target.dataset.head];
    const rows = [...this.element.children].map((row) => row.querySelectorAll("button"));
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const across = down ? head : step(event.key, head, rows[layer].length);
    if (across === null) return;
    event.preventDefault();
    const row = rows[clamp(layer + (down || 0), 0, rows.length - 1)];
    const button = row[clamp(across, 0, row.length - 1)];
    button.focus();
    button.click();
  }
}
