// A page completes its address by itself, such as by the bundle that it is about. Streamlit makes each such change a step
// of the browser's history, so that Back led to the same page, which completed its address again. What is changed before
// a person did anything on a page takes the place of the step. Where a link is followed, the address can be completed
// before its path is that of the page: it waits for that. The policy of the server names this script by its hash.
if (!window.plannerBack) {
  window.plannerBack = true;
  const patienceMs = 10000;
  let acted = false;
  let following = 0;
  let search = null;
  const push = history.pushState.bind(history);
  const arrive = () => {
    clearTimeout(following);
    following = 0;
    const late = search;
    search = null;
    return late;
  };
  for (const kind of ["pointerdown", "keydown"]) {
    addEventListener(kind, () => (acted = true), true);
  }
  addEventListener("popstate", () => (acted = false), true);
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || link.target === "_blank" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.origin !== location.origin || link.pathname === location.pathname) return;
    clearTimeout(following);
    following = setTimeout(() => {
      const late = arrive();
      if (late !== null) push(null, "", late);
    }, patienceMs);
  }, true);
  history.pushState = (state, title, url) => {
    const there = new URL(url ?? location.href, location.href);
    if (there.pathname !== location.pathname) {
      there.search = arrive() ?? there.search;
      acted = false;
      push(state, title, there.href);
    } else if (following) {
      search = there.search;
    } else if (acted) {
      push(state, title, url);
    } else {
      history.replaceState(state, title, url);
    }
  };
}
