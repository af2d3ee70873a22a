// In place of @lezer/common and @codemirror/language, which are for code. keys.js uses no command that calls them.

const unused = null;

export {
  unused as IndentContext,
  unused as NodeProp,
  unused as getIndentUnit,
  unused as getIndentation,
  unused as indentString,
  unused as indentUnit,
  unused as matchBrackets,
  unused as syntaxTree,
};
