/* What the attention page is drawn with: small tools, and the three images of a map. Nothing here knows what is chosen
   or why. A map is {rows, columns, asking, answering, largest, bytes}: a byte for each weight, 255 being the largest of
   its row; `shade(row, column)` is how dark a weight is drawn, 0 … 1. */
"use strict";

const LINE = 28; // pixels: a token in the lists beside the lines
const CELL = 30; // pixels: the largest cell of a matrix
const SIDE = 460; // pixels: the longer side of an image

const make = (tag, values = {}, ...inside) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(values)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...inside);
  return element;
};
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const percent = (w) => (w === 0 ? "0\u00a0%" : `${w >= 0.0995 ? (100 * w).toFixed(1) : (100 * w).toPrecision(2)}\u00a0%`);
const visible = (label) => {
  const seen = label.replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  return seen.trim() ? seen : seen.replace(/\s/g, "␣") || "∅";
};

/** A label amid other text: not too long, and turning the direction of nothing but itself. */
const isolated = (label) => {
  const seen = [...visible(label)];
  return `\u2068${seen.length > 40 ? `${seen.slice(0, 39).join("")}…` : seen.join("")}\u2069`;
};

/** The steps of a list for a key: how far from `at` to go, or null. */
const step = (key, at, count, wide = 1) => {
  const by = { ArrowRight: 1, ArrowDown: wide, ArrowLeft: -1, ArrowUp: -wide, PageDown: 10, PageUp: -10 }[key];
  const to = key === "Home" ? 0 : key === "End" ? count - 1 : by === undefined ? null : at + by;
  return to === null ? null : clamp(to, 0, count - 1);
};

/** An image of one colour whose opacity is given, 0 … 255, by cell. */
const tinted = (canvas, width, height, [red, green, blue], opacity) => {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  const cells = new Uint32Array(image.data.buffer);
  const colour = (blue << 16) | (green << 8) | red;
  for (let i = 0; i < cells.length; i++) cells[i] = (opacity(i) << 24) | colour;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
};


/** A colour of the page's style as [red, green, blue]. */
const colour = (element, name) => {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(element).getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(probe.fillStyle.slice(at, at + 2), 16));
};

/** The canvas at a size in pixels of the page, sharp on every screen. */
const fit = (canvas, width, height) => {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
};

/** Lines from each asking token at the left to each answering one at the right; those of `at` stand out. */
const drawLines = (canvas, width, map, shade, at, { accent, heat }) => {
  const pen = fit(canvas, width, LINE * (Math.max(map.rows, map.columns) + 1));
  const height = (index) => LINE * (index + 1.5);
  const line = (row, column, [red, green, blue], strength) => {
    const opacity = shade(row, column) * strength;
    if (opacity < 1 / 255) return;
    pen.strokeStyle = `rgba(${red}, ${green}, ${blue}, ${opacity})`;
    pen.lineWidth = 1 + 2 * opacity;
    pen.beginPath();
    pen.moveTo(0, height(row));
    pen.bezierCurveTo(width / 3, height(row), (2 * width) / 3, height(column), width, height(column));
    pen.stroke();
  };
  const chosen = (row, column) => (at.side === "asking" ? row : column) === at.index;
  for (let row = 0; row < map.rows; row++) {
    for (let column = 0; column < map.columns; column++) if (!chosen(row, column)) line(row, column, accent, 0.45);
  }
  if (at.side === "asking") for (let column = 0; column < map.columns; column++) line(at.index, column, heat, 1);
  else for (let row = 0; row < map.rows; row++) line(row, at.index, heat, 1);
};

/** The whole map: rows ask, columns answer, `at` is framed. `image` is its cells, a pixel each. Where the cells are. */
const drawMatrix = (canvas, width, map, image, at, { ink, heat }) => {
  const measure = canvas.getContext("2d");
  measure.font = "13px system-ui, sans-serif";
  const longest = (side) => Math.min(120, Math.max(...side.labels.map((label) => measure.measureText(visible(label)).width)));
  const few = (width - 130) / map.columns >= 14 && map.rows <= 80;
  const [left, top] = few ? [longest(map.asking) + 8, longest(map.answering) + 8] : [22, 22];
  const room = Math.min(CELL, (width - left - 2) / map.columns);
  const cell = room >= 3 ? Math.floor(room) : room;
  const [wide, high] = [cell * map.columns, cell * map.rows];
  const pen = fit(canvas, Math.ceil(left + wide + 2), Math.ceil(top + high + 2));
  pen.font = measure.font;
  pen.fillStyle = `rgb(${ink})`;
  pen.textBaseline = "middle";
  const across = (text, x, y) => {
    pen.save();
    pen.translate(x, y);
    pen.rotate(-Math.PI / 2);
    pen.fillText(text, 0, 0, 120);
    pen.restore();
  };
  if (few) {
    pen.textAlign = "right";
    map.asking.labels.forEach((label, n) => pen.fillText(visible(label), left - 5, top + cell * (n + 0.5), 120));
    pen.textAlign = "left";
    map.answering.labels.forEach((label, n) => across(visible(label), left + cell * (n + 0.5), top - 5));
  } else {
    pen.fillText("answering →", left, 10);
    pen.textAlign = "right";
    across("← asking", 10, top);
  }
  pen.imageSmoothingEnabled = cell < 3;
  pen.drawImage(image, left, top, wide, high);
  pen.strokeStyle = `rgba(${ink}, 0.3)`;
  pen.strokeRect(left - 0.5, top - 0.5, wide + 1, high + 1);
  pen.strokeStyle = `rgb(${heat})`;
  pen.lineWidth = 2;
  if (at.side === "asking") pen.strokeRect(left - 1, top + cell * at.index - 1, wide + 2, Math.max(cell, 2) + 2);
  else pen.strokeRect(left + cell * at.index - 1, top - 1, Math.max(cell, 2) + 2, high + 2);
  return { left, top, cell, rows: map.rows, columns: map.columns };
};

/** The number of the first label of a side that is a place: before it stand others, such as a class token. */
const firstPlace = ({ labels, grid: [rows, columns] }) => labels.length - rows * columns;

/** The image, and over it the places of `grid` as dark as `opacity(index)`; `chosen` is framed. Where the cells are. */
const drawImage = (canvas, width, image, grid, opacity, chosen, { ground, heat }) => {
  const [rows, columns] = grid.grid;
  const scale = Math.min(SIDE, width) / Math.max(...(image ? [image.height, image.width] : [rows, columns]));
  const [high, wide] = (image ? [image.height, image.width] : [rows, columns]).map((size) => Math.round(size * scale));
  const pen = fit(canvas, wide, high);
  pen.imageSmoothingEnabled = scale < 2;
  if (image) pen.drawImage(image, 0, 0, wide, high);
  pen.fillStyle = `rgba(${ground}, 0.35)`; // paler, so that the colour is seen on every image
  pen.fillRect(0, 0, wide, high);
  const first = firstPlace(grid);
  const [cellWide, cellHigh] = [wide / columns, high / rows];
  const shades = tinted(document.createElement("canvas"), columns, rows, heat, (n) => Math.round(210 * opacity(first + n)));
  pen.imageSmoothingEnabled = false;
  pen.drawImage(shades, 0, 0, wide, high);
  if (chosen !== null && chosen >= first) {
    const [row, column] = [Math.floor((chosen - first) / columns), (chosen - first) % columns];
    for (const [style, thick] of [["#000", 4], ["#fff", 2]]) {
      pen.strokeStyle = style;
      pen.lineWidth = thick;
      pen.strokeRect(column * cellWide, row * cellHigh, cellWide, cellHigh);
    }
  }
  return { left: 0, top: 0, cell: cellWide, high: cellHigh, rows, columns };
};
