// Runs before the first paint: sets the theme chosen in this browser; without one, the system's.
(function () {
  try {
    var theme = localStorage.getItem("lakemill.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch (error) {
    // A browser without storage shows the system's theme.
  }
})();
