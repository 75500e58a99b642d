// On small screens the sidebar is a drawer over the page. The button Edit opens it at its form, before the menu; a link
// that is followed closes it. Streamlit remembers for each browser whether the drawer was open, so that a page cannot
// do this from Python. The policy of the server names this script by its hash.
if (!window.plannerDrawer) {
  window.plannerDrawer = true;
  const press = (selector) => document.querySelector(selector)?.click();
  document.addEventListener("click", (event) => {
    if (innerWidth > 768) return;
    if (event.target.closest(".st-key-open-drawer button")) {
      document.body.classList.add("form-first");
      press("[data-testid=stExpandSidebarButton]");
    } else if (event.target.closest("[data-testid=stApp] a[href]")) {
      document.body.classList.remove("form-first");
      press("[data-testid=stSidebarCollapseButton] button");
    }
  });
}
