// The first error in a JSON text with its place. JSON.parse of a browser does not always tell the place.

const TOKEN = /\s*(?:("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])|([[\]{}:,]))/y;

class JsonError extends Error {
  constructor(message, position) {
    super(message);
    this.position = position;
  }
}

/** Return the first error in a JSON text as {line, column, message}, or null. An empty text means that nothing is set. */
export function findJsonError(text) {
  if (!text.trim()) return null;
  try {
    checkText(text);
    return null;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const before = text.slice(0, error.position).split("\n");
    const column = [...before.at(-1)].length + 1; // in characters, as the server counts them
    return { line: before.length, column, message: error.message };
  }
}

// The state is a stack of open brackets and what may come next, so that deep nesting does not exhaust the call stack.
function checkText(text) {
  const open = [];
  let expected = "value";
  let position = 0;
  for (;;) {
    const { kind, start, end } = readToken(text, position);
    position = end;
    if (kind === "end") {
      if (expected === "end") return;
      throw new JsonError(open.length ? `Expecting '${closing(open)}'` : "Expecting a value", start);
    }
    expected = next(expected, kind, open, start);
  }
}

const closing = (open) => (open.at(-1) === "{" ? "}" : "]");

function readToken(text, position) {
  TOKEN.lastIndex = position;
  const match = TOKEN.exec(text);
  const start = match ? TOKEN.lastIndex - match[0].trimStart().length : position + /^\s*/.exec(text.slice(position))[0].length;
  if (match) return { kind: match[3] ?? (match[1] ? "text" : "value"), start, end: TOKEN.lastIndex };
  if (start >= text.length) return { kind: "end", start, end: start };
  const isText = text[start] === '"';
  throw new JsonError(isText ? "This text is not closed, or has an invalid character" : "Expecting a value", start);
}

function next(expected, kind, open, position) {
  const isValue = kind === "text" || kind === "value" || kind === "{" || kind === "[";
  if (expected === "name or }" && kind === "}") return close(open);
  if (expected === "value or ]" && kind === "]") return close(open);
  if (expected.startsWith("name") && kind === "text") return ":";
  if (expected === ":" && kind === ":") return "value";
  if (expected.startsWith("value") && isValue) {
    if (kind !== "{" && kind !== "[") return open.length ? "comma" : "end";
    open.push(kind);
    return kind === "{" ? "name or }" : "value or ]";
  }
  if (expected === "comma" && kind === ",") return open.at(-1) === "{" ? "name" : "value";
  if (expected === "comma" && kind === closing(open)) return close(open);
  throw new JsonError(describe(expected, open), position);
}

function close(open) {
  open.pop();
  return open.length ? "comma" : "end";
}

function describe(expected, open) {
  if (expected === "end") return "Extra data";
  if (expected === "comma") return `Expecting ',' or '${closing(open)}'`;
  if (expected === ":") return "Expecting ':'";
  return expected.startsWith("name") ? "Expecting a name in double quotes" : "Expecting a value";
}
