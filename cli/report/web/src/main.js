const data = JSON.parse(document.getElementById("data").textContent);
const report = document.getElementById("report");
report.replaceChildren();
const title = document.createElement("h1");
title.textContent = data.answer;
report.append(title);
