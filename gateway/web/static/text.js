// Text from people, models and commands as nodes of the page. Nothing here is ever parsed as HTML.

/**
 * Characters that do not show, or that change how others are shown: control and format characters (zero-width, bidi),
 * separators other than the plain space, fillers, variation selectors, private, unassigned and lone surrogates.
 */
const UNSEEN =
  /(?![\n\t ])[\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;

/** The same for chat: only what could show text in another order or hide in it; joiners are needed by scripts and emoji. */
const MISLEADING = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/** An element with a class and children; strings become text nodes. */
export function element(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

/** `text` with every unseen character spelled out, as in ⟨U+202E⟩. */
export function visible(text, unseen = UNSEEN) {
  const fragment = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(unseen)) {
    if (match.index > from) fragment.append(text.slice(from, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    const mark = element("span", "mark", `⟨U+${code}⟩`);
    mark.title = "a character that would not be seen";
    fragment.append(mark);
    from = match.index + match[0].length;
  }
  fragment.append(text.slice(from));
  return fragment;
}

/** `text` with fenced blocks and `inline` code set as code; everything else as it is. */
export function prose(text) {
  const fragment = document.createDocumentFragment();
  let plain = [];
  let fence = null;
  let block = [];
  const flush = () => {
    const joined = plain.join("\n").replace(/^\n+|\n+$/g, "");
    if (joined) fragment.append(paragraph(joined));
    plain = [];
  };
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(line);
    if (fence === null && mark) {
      flush();
      fence = mark[1];
      block = [];
    } else if (fence !== null && mark && mark[1].startsWith(fence) && !mark[2].trim()) {
      fragment.append(codeBlock(block.join("\n")));
      fence = null;
    } else {
      (fence === null ? plain : block).push(line);
    }
  }
  if (fence !== null) fragment.append(codeBlock(block.join("\n")));
  flush();
  return fragment;
}

function paragraph(text) {
  const node = element("div", "prose");
  let from = 0;
  for (const match of text.matchAll(/(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)/g)) {
    node.append(plainly(text.slice(from, match.index)), element("code", "", plainly(match[2])));
    from = match.index + match[0].length;
  }
  node.append(plainly(text.slice(from)));
  return node;
}

const plainly = (text) => visible(text, MISLEADING);

function codeBlock(text) {
  const pre = element("pre", "", element("code", "", plainly(text)));
  pre.tabIndex = 0; // so that a long line can be scrolled with the keyboard
  return pre;
}

/** A principal as people read it: those of this API without their prefix. */
export function person(principal) {
  return principal.replace(/^http:/, "");
}
