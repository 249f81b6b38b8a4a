// Before anything is drawn: the theme that the person chose in this browser; without one, the system's.
(function () {
  try {
    var theme = localStorage.getItem("lakemill.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch (error) {
    // A browser that keeps nothing shows the system's theme.
  }
})();
