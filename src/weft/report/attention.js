/* The attention page: every <section class="attention"> is drawn from the data inside it. What is chosen stands in
   `state`; whatever changes it goes through `choose` or `point`, and text only ever becomes text. */
"use strict";

const SHORT = 24; // tokens: up to here lines are drawn first, above it the matrix
const LINES = 80; // tokens: up to here lines can be drawn
const FLAT = 40; // tokens: above it weights are so small that shades begin with the share of the row's largest
const TOP = 12; // rows of the table until all are asked for

class Attention {
  constructor(root) {
    this.root = root;
    this.app = root.querySelector(".app");
    this.data = new Data(root);
    this.view = this.data.view;
    this.view.maps.forEach((map, number) => Object.assign(map, { number, key: `map ${number}` }));
    this.parts = [...new Set(this.view.maps.map((map) => map.part))];
    this.state = { part: this.parts[0], layer: 0, head: 0, what: "head", all: false };
    this.hover = null;
    this.turn = 0;
  }

  layers() {
    return this.view.maps.filter((map) => map.part === this.state.part);
  }

  async chosenMap() {
    const { part, layer, head, what } = this.state;
    const layers = this.layers();
    if (what === "rollout") {
      const across = { ...layers[0], asking: layers[layers.length - 1].asking };
      return (await this.data.heads(across, `rollout ${part}`))[0];
    }
    const heads = await this.data.heads(layers[layer]);
    return what === "mean" ? meanOf(heads) : heads[head];
  }

  weight(row, column) {
    return (this.map.bytes[row * this.map.columns + column] / 255) * this.map.largest[row];
  }

  /** A weight in per cent, where it is a share of its row; else as a number. */
  inWords(weight) {
    return this.areShares() ? percent(weight) : weight.toPrecision(3);
  }

  areShares() {
    return this.state.what === "rollout" || this.layers()[this.state.layer].shares;
  }

  /** How dark a weight is drawn, 0 … 1: as it is, or beside the largest of its row. */
  shade(row, column) {
    const share = this.map.bytes[row * this.map.columns + column] / 255;
    return this.state.shade === "row" ? share : share * this.map.largest[row];
  }

  /** Row and column of what the chosen token looks at, or of what looks at it. */
  pair(at, other) {
    return at.side === "asking" ? [at.index, other] : [other, at.index];
  }

  // -- changes ------------------------------------------------------------------------------------------------

  /** Changes what is chosen, then everything that shows it. */
  async choose(change) {
    Object.assign(this.state, change);
    const { state, view } = this;
    const layers = this.layers();
    const turn = ++this.turn;
    state.layer = clamp(state.layer, 0, layers.length - 1);
    state.head = clamp(state.head, 0, layers[state.layer].heads - 1);
    if (state.what === "rollout" && !view.rollouts.includes(state.part)) state.what = "head";
    const map = await this.chosenMap();
    if (turn !== this.turn) return; // something else was chosen meanwhile
    const same = this.map && this.map.asking === map.asking && this.map.answering === map.answering;
    this.map = map;
    this.hover = null;
    if (!same) this.settle();
    this.matrixCells = null;
    this.controls();
    this.lists(same);
    this.update();
  }

  /** Other tokens on the sides: what is chosen of them, and how they are best drawn. */
  settle() {
    const { state, map } = this;
    const grid = map.asking.grid || map.answering.grid;
    const size = Math.max(map.rows, map.columns);
    state.draws = [...(grid ? ["image"] : []), ...(size <= LINES ? ["lines"] : []), "matrix"];
    if (!state.draws.includes(state.draw)) state.draw = size <= SHORT || grid ? state.draws[0] : "matrix";
    state.shade ??= grid || map.columns > FLAT ? "row" : "weight";
    const [high, wide] = map.asking.grid || [0, 0];
    const middle = Math.floor(high / 2) * wide + Math.floor(wide / 2);
    state.at = { side: "asking", index: !grid ? map.rows - 1 : map.rows === high * wide ? middle : 0 };
  }

  now() {
    return this.hover || this.state.at;
  }

  point(side, index, keep) {
    if (keep) this.state.at = { side, index };
    this.hover = keep ? null : { side, index };
    this.update();
  }

  leave() {
    this.cell = null;
    if (!this.hover) return;
    this.hover = null;
    this.update();
  }

  // -- the page -----------------------------------------------------------------------------------------------

  build() {
    const id = this.root.id;
    const title = `h${this.view.level}`;
    this.overview = new Overview(this.root, this.data, (change) => this.choose(change));
    this.bar = make("div", { class: "bar" });
    this.canvas = make("canvas", { role: "img" });
    this.frame = make("div", { class: "frame" }, this.canvas);
    this.boxes = { asking: make("div", { class: "side asking" }), answering: make("div", { class: "side answering" }) };
    this.figure = make("div", { class: "figure" }, this.boxes.asking, this.frame, this.boxes.answering);
    this.legend = make("p", { class: "legend" });
    this.said = make("p", { class: "said", "aria-live": "polite" });
    this.caption = make("caption");
    this.heading = make("tr");
    this.body = make("tbody");
    const table = make("table", {}, this.caption, make("thead", {}, this.heading), this.body);
    this.numbers = make("div", { class: "numbers", tabindex: 0, role: "region", "aria-label": "The numbers" }, table);
    this.every = make("button", { type: "button", onclick: () => this.choose({ all: !this.state.all }) });
    const shown = make("div", { class: "shown" }, make("div", { class: "drawn" }, this.figure, this.legend),
      make("div", { class: "told" }, this.said, this.numbers, this.every));
    const titled = (words, ...parts) => [make(title, {}, words), ...parts];
    this.panel = make("div", { class: "panel" }, ...titled("Layers and heads", this.overview.element),
      ...titled("Who looks where", this.bar, shown));
    this.app.replaceChildren(this.panel);
    if (this.parts.length > 1) this.tabs(id);
    this.canvas.addEventListener("mousemove", (event) => this.onCanvas(event, false));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.onCanvas(event, true));
    this.frame.addEventListener("keydown", (event) => this.imageKey(event));
  }

  tabs(id) {
    this.tablist = make("div", { role: "tablist", "aria-label": "Part of the model", class: "tabs" });
    this.parts.forEach((part, n) => {
      const chosen = () => this.choose({ part, layer: 0, head: 0, draw: undefined, shade: undefined });
      this.tablist.append(make("button", { type: "button", role: "tab", id: `${id}-tab-${n}`, "aria-controls": `${id}-panel`,
        onclick: chosen }, part));
    });
    this.tablist.addEventListener("keydown", (event) => {
      const tabs = [...this.tablist.children];
      const to = step(event.key, tabs.indexOf(event.target), tabs.length);
      if (to === null) return;
      event.preventDefault();
      tabs[to].focus();
      tabs[to].click();
    });
    this.panel.id = `${id}-panel`;
    this.panel.setAttribute("role", "tabpanel");
    this.app.prepend(this.tablist);
  }

  /** Everything that can be chosen, as it is now chosen. */
  controls() {
    const { state, view } = this;
    if (this.tablist) {
      [...this.tablist.children].forEach((tab, n) => {
        const chosen = this.parts[n] === state.part;
        tab.setAttribute("aria-selected", chosen);
        tab.tabIndex = chosen ? 0 : -1;
        if (chosen) this.panel.setAttribute("aria-labelledby", tab.id);
      });
    }
    this.overview.show(this.layers(), state);
    const whats = [["head", `head ${state.layer + 1}.${state.head + 1}`], ["mean", `mean of layer ${state.layer + 1}`]];
    if (view.rollouts.includes(state.part)) whats.push(["rollout", "rollout of all layers"]);
    const draws = { image: "image", lines: "lines", matrix: "matrix" };
    const groups = [
      ["what", "Show", whats],
      ["draw", "Draw", state.draws.map((draw) => [draw, draws[draw]])],
      ["side", "Ask", [["asking", "where it looks"], ["answering", "who looks at it"]]],
      ["shade", "Shade", [["weight", "by weight"], ["row", "by share of the row’s largest"]]],
    ];
    if (this.bar.children.length !== groups.length) this.bar.replaceChildren(...groups.map(() => make("fieldset")));
    groups.forEach(([key, legend, options], n) => this.choice(this.bar.children[n], key, legend, options));
  }

  choice(fieldset, key, legend, options) {
    const radios = fieldset.querySelectorAll("input");
    if ([...radios].map((radio) => radio.value).join() !== options.map(([value]) => value).join()) {
      const set = (value) => (key === "side" ? this.turnRound(value) : this.choose({ [key]: value }));
      fieldset.replaceChildren(make("legend", {}, legend), ...options.map(([value]) => make("label", {},
        make("input", { type: "radio", name: `${this.root.id}-${key}`, value, onchange: () => set(value) }), make("span"))));
    }
    fieldset.hidden = options.length < 2;
    options.forEach(([value, words], n) => {
      fieldset.querySelectorAll("span")[n].textContent = words;
      fieldset.querySelectorAll("input")[n].checked = value === (key === "side" ? this.state.at.side : this.state[key]);
    });
  }

  turnRound(side) {
    const { asking, answering } = this.map;
    const count = (side === "asking" ? asking : answering).labels.length;
    this.point(side, clamp(this.state.at.index, 0, count - 1), true);
  }

  /** The tokens of both sides, each a list to walk through; of an image only what has no place in it. */
  lists(same) {
    const { draw } = this.state;
    if (same && this.listed === draw) return;
    this.listed = draw;
    this.figure.className = `figure ${draw}`;
    for (const side of ["asking", "answering"]) {
      const { labels, grid } = this.map[side];
      const count = draw === "image" && grid ? labels.length - grid[0] * grid[1] : labels.length;
      const options = labels.slice(0, count).map((label, n) => make("span", { role: "option", "data-at": n, tabindex: -1,
        title: `${label} (${n + 1})` }, visible(label)));
      const box = make("div", { role: "listbox", "aria-label": `Tokens ${side}` }, ...options);
      const at = (event) => event.target.dataset.at && [side, +event.target.dataset.at];
      box.addEventListener("mouseover", (event) => at(event) && this.point(...at(event), false));
      box.addEventListener("mouseleave", () => this.leave());
      box.addEventListener("focusin", (event) => at(event) && this.point(...at(event), true));
      box.addEventListener("click", (event) => at(event) && this.point(...at(event), true));
      box.addEventListener("keydown", (event) => {
        const to = event.target.dataset.at ? step(event.key, +event.target.dataset.at, count) : null;
        if (to === null) return;
        event.preventDefault();
        box.children[to].focus();
      });
      this.boxes[side].replaceChildren(make("span", { class: "name", "aria-hidden": "true" }, side), box);
      this.boxes[side].hidden = count === 0;
      this.boxes[side].last = 0;
    }
    const places = { tabindex: "0", role: "application", "aria-label": "Places of the image: arrow keys choose" };
    for (const [name, value] of Object.entries(places)) {
      if (draw === "image") this.frame.setAttribute(name, value);
      else this.frame.removeAttribute(name);
    }
  }

  /** Marks in a list the chosen token, and behind the others how much they give or take. */
  mark(side, at) {
    const box = this.boxes[side];
    const own = side === at.side;
    const [red, green, blue] = this.colours.accent;
    if (own) box.last = at.index;
    const options = box.lastChild.children;
    const stop = box.last < options.length ? box.last : 0;
    const chosen = this.state.at.side === side ? this.state.at.index : -1;
    for (let n = 0; n < options.length; n++) {
      const option = options[n];
      const tint = own ? 0 : Math.round(128 * this.shade(...this.pair(at, n)));
      const looks = `${own && n === at.index}${tint}${n === stop}${n === chosen}`;
      if (option.looks === looks) continue;
      option.looks = looks;
      option.classList.toggle("now", own && n === at.index);
      option.style.backgroundColor = tint ? `rgba(${red}, ${green}, ${blue}, ${tint / 255})` : "";
      option.tabIndex = n === stop ? 0 : -1;
      option.setAttribute("aria-selected", n === chosen);
    }
  }

  /** Everything that depends on which token is chosen or under the mouse. */
  update() {
    const at = this.now();
    const other = at.side === "asking" ? "answering" : "asking";
    const { labels } = this.map[other];
    const weights = Float32Array.from(labels, (_, n) => this.weight(...this.pair(at, n)));
    this.colours ??= Object.fromEntries(["accent", "heat", "ink", "ground"].map((n) => [n, colour(this.root, `--${n}`)]));
    this.mark("asking", at);
    this.mark("answering", at);
    this.tell(at, labels, weights);
    for (const radio of this.bar.querySelectorAll(`input[name="${this.root.id}-side"]`)) radio.checked = radio.value === at.side;
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.draw());
  }

  /** The sentence and the table. */
  tell(at, labels, weights) {
    const order = Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a] || a - b);
    const some = order.filter((n) => weights[n] > 0);
    const name = (label, n) => `“${isolated(label)}” (${n + 1})`;
    const verb = at.side === "asking" ? "looks at" : "is looked at by";
    const who = name(this.map[at.side].labels[at.index], at.index);
    const most = some.slice(0, 3).map((n) => `${name(labels[n], n)} ${this.inWords(weights[n])}`);
    this.said.textContent = `${who} ${verb} ${most.join(", ") || "nothing"}${some.length > 3 ? ", …" : "."}`;
    this.caption.textContent = at.side === "asking" ? `Where ${who} looks` : `Who looks at ${who}`;
    const heads = [verb, "position", "weight"].map((head, n) => make("th", { scope: "col", class: n ? "number" : false }, head));
    this.heading.replaceChildren(...heads);
    const shown = this.state.all ? order : some.slice(0, TOP);
    const top = weights[order[0]] || 1;
    const row = (label, place, weight, share) => make("tr", {}, make("td", { class: "label" }, label),
      make("td", { class: "number" }, place), make("td", { class: "number gauge", style: `--share: ${share}` }, this.inWords(weight)));
    const rows = shown.map((n) => row(isolated(labels[n]), n + 1, weights[n], (weights[n] / top).toFixed(3)));
    const rest = some.slice(shown.length);
    if (rest.length) rows.push(row(`${rest.length} more`, "", rest.reduce((sum, n) => sum + weights[n], 0), 0));
    this.body.replaceChildren(...rows);
    this.every.textContent = this.state.all ? `Only the strongest` : `All ${order.length}`;
    this.every.hidden = order.length <= TOP;
  }

  draw() {
    const { state, map, colours } = this;
    const at = this.now();
    const shade = (row, column) => this.shade(row, column);
    const width = Math.max(120, this.frame.clientWidth);
    this.cells = null;
    if (state.draw === "lines") drawLines(this.canvas, width, map, shade, at, colours);
    else if (state.draw === "matrix") {
      this.matrixCells ??= tinted(document.createElement("canvas"), map.columns, map.rows, colours.accent, (cell) =>
        Math.round(255 * shade(Math.floor(cell / map.columns), cell % map.columns)));
      this.cells = drawMatrix(this.canvas, width, map, this.matrixCells, at, colours);
    } else {
      const other = at.side === "asking" ? map.answering : map.asking;
      const grid = other.grid ? other : map[at.side];
      const opacity = (n) => (other.grid ? shade(...this.pair(at, n)) : 0);
      const chosen = map[at.side].grid ? at.index - firstPlace(map[at.side]) + firstPlace(grid) : null;
      this.cells = drawImage(this.canvas, width, this.image, grid, opacity, chosen, colours);
    }
    const layer = `layer ${state.layer + 1}`;
    const what = { head: `${layer}, head ${state.head + 1}`, mean: `${layer}, mean of heads`, rollout: "rollout of all layers" }[state.what];
    const name = `Attention of ${what}: ${map.rows} asking, ${map.columns} answering. `;
    this.canvas.setAttribute("aria-label", name + this.said.textContent);
    const dark = state.shade === "row" ? "full colour is the largest weight of a row" : `full colour is a weight of ${this.areShares() ? "100\u00a0%" : "1"}`;
    const rolled = " Rollout multiplies the layers, half of each state being kept (Abnar and Zuidema 2020).";
    const pair = this.cell && state.draw === "matrix" ? this.pairTold(...this.cell) : "";
    this.legend.textContent = `${pair}${what}: ${dark}. Weights are rounded to 1/255 of the largest of their row.${
      state.what === "rollout" ? rolled : ""}`;
    this.root.dataset.ready = `${state.part} ${state.what} ${state.layer} ${state.head} ${at.side} ${at.index}`;
  }

  pairTold(row, column) {
    const [from, to] = [this.map.asking.labels[row], this.map.answering.labels[column]].map(isolated);
    return `“${from}” (${row + 1}) looks at “${to}” (${column + 1}): ${this.inWords(this.weight(row, column))}. `;
  }

  onCanvas(event, keep) {
    const { cells } = this;
    if (!cells) return;
    const column = Math.floor((event.offsetX - cells.left) / cells.cell);
    const row = Math.floor((event.offsetY - cells.top) / (cells.high ?? cells.cell));
    if (row < 0 || column < 0 || row >= cells.rows || column >= cells.columns) return;
    const { side } = this.state.at;
    this.cell = keep ? null : [row, column];
    if (this.state.draw === "matrix") this.point(side, side === "asking" ? row : column, keep);
    else if (this.map[side].grid) this.point(side, firstPlace(this.map[side]) + row * cells.columns + column, keep);
  }

  imageKey(event) {
    const { side, index } = this.state.at;
    const { grid } = this.map[side];
    if (this.state.draw !== "image" || !grid) return;
    const first = firstPlace(this.map[side]);
    const from = index < first ? 0 : index - first;
    const to = step(event.key, from, grid[0] * grid[1], grid[1]);
    if (to === null) return;
    event.preventDefault();
    this.point(side, first + (index < first ? 0 : to), true);
  }

  async start() {
    this.build();
    this.image = await this.data.image();
    if (this.image) this.figure.append(this.image.coloured);
    await this.choose({});
    new ResizeObserver(() => this.draw()).observe(this.app);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = this.matrixCells = null;
      this.overview.paint();
      this.update();
    });
    await this.data.warm();
    this.root.dataset.warm = "yes";
  }
}

for (const root of document.querySelectorAll("section.attention:not([data-begun])")) {
  root.dataset.begun = "yes";
  new Attention(root).start().catch((problem) => {
    root.querySelector(".app").append(make("p", { role: "alert" }, `The maps cannot be drawn here: ${problem.message}`));
    throw problem;
  });
}
