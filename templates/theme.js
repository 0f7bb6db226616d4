document.documentElement.classList.add("js");
try { const t = localStorage.getItem("spillprof-theme"); if (t === "dark" || t === "light") document.documentElement.dataset.theme = t; } catch { /* no storage here */ }
