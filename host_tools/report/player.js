// Plays the redacted video with gaze, fixation, emotion and FCC beside it, in step with the picture.
(function (root, data) {
  const video = root.querySelector("video");
  const over = root.querySelector("canvas.over");
  const curve = root.querySelector("canvas.curve");
  const bars = root.querySelector(".bars");
  const now = root.querySelector(".now");
  const css = getComputedStyle(document.documentElement);
  const colour = (name) => css.getPropertyValue(name).trim();
  const rows = data.rows; // t_s, gaze_x, gaze_y, fix_x, fix_y, fcc_now, fcc, reason, label, probabilities
  const first = rows[0][0];
  const last = rows[rows.length - 1][0];

  function rowAt(t) {
    let low = 0, high = rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (rows[middle][0] <= t + 1e-4) low = middle; else high = middle - 1;
    }
    return low;
  }

  function sharpen(canvas) {
    const box = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    return [pen, box.width, box.height];
  }

  function drawOver(row) {
    const [pen, width, height] = sharpen(over);
    const x = width / data.width, y = height / data.height;
    if (row[3] !== null) {
      pen.strokeStyle = "#ffd23f"; pen.lineWidth = 2.5;
      pen.beginPath(); pen.arc(row[3] * x, row[4] * y, 22, 0, 7); pen.stroke();
    }
    if (row[1] !== null) {
      pen.fillStyle = "#ff4d4d";
      pen.beginPath(); pen.arc(row[1] * x, row[2] * y, 5, 0, 7); pen.fill();
    }
  }

  function drawCurve(index) {
    const [pen, width, height] = sharpen(curve);
    const px = (t) => 34 + (width - 44) * (t - first) / Math.max(1e-9, last - first);
    const py = (v) => 8 + (height - 26) * (1 - v);
    pen.font = "11px system-ui"; pen.fillStyle = colour("--soft"); pen.strokeStyle = colour("--line");
    for (const v of [0, 0.5, 1]) {
      pen.fillText(v.toFixed(1), 8, py(v) + 4);
      pen.beginPath(); pen.moveTo(34, py(v)); pen.lineTo(width - 10, py(v)); pen.stroke();
    }
    for (const [column, name, line] of [[5, "--soft", 1], [6, "--accent", 2]]) {
      pen.strokeStyle = colour(name); pen.lineWidth = line; pen.beginPath();
      let on = false;
      for (const row of rows) {
        if (row[column] === null) { on = false; continue; }
        if (on) pen.lineTo(px(row[0]), py(row[column])); else pen.moveTo(px(row[0]), py(row[column]));
        on = true;
      }
      pen.stroke();
    }
    pen.strokeStyle = "#ff4d4d"; pen.lineWidth = 1.5; pen.beginPath();
    pen.moveTo(px(rows[index][0]), 4); pen.lineTo(px(rows[index][0]), height - 16); pen.stroke();
    pen.fillStyle = colour("--soft");
    pen.fillText("FCC: this frame (thin), window (thick)", 38, height - 4);
  }

  function drawBars(row) {
    const parts = data.labels.map((label, i) => {
      const p = row[9] ? row[9][i] : 0;
      return `<div><span>${label}</span><i style="width:${(100 * p).toFixed(1)}%"></i></div>`;
    });
    bars.innerHTML = row[9] ? parts.join("") : "<div><span>no face, no emotion</span></div>";
    const score = row[5] === null ? `undefined (${row[7]})` : row[5].toFixed(3);
    now.textContent = `t ${row[0].toFixed(2)} s · FCC ${score}` + (row[8] ? ` · ${row[8]}` : "");
  }

  let shown = -1;
  function tick() {
    const index = rowAt(first + video.currentTime);
    if (index !== shown) { shown = index; drawOver(rows[index]); drawCurve(index); drawBars(rows[index]); }
    requestAnimationFrame(tick);
  }
  curve.addEventListener("click", (event) => {
    const box = curve.getBoundingClientRect();
    video.currentTime = Math.max(0, (event.clientX - box.left - 34) / (box.width - 44) * (last - first));
  });
  window.addEventListener("resize", () => { shown = -1; });
  tick();
})(document.getElementById("player"), JSON.parse(document.getElementById("player-data").textContent));
