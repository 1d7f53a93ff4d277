/**
 * Owns reading what a TypeScript source imports, and its code without comments and string contents. Reads the
 * formatted sources of this repository (import statements start a line); it is no parser of arbitrary TypeScript.
 */

export interface Import {
  readonly specifier: string;
  /** Erased before the program runs: `import type`, `export type … from`. */
  readonly typeOnly: boolean;
  /** Names bound by a static import, as exported; empty for side effects, namespaces and dynamic imports. */
  readonly names: readonly string[];
  readonly line: number;
}

const statement = /^(?:import|export)\s+(type\s)?\s*([^'"`;]*?)\s*from\s*['"]([^'"]+)['"]/gm;
const sideEffect = /^import\s*['"]([^'"]+)['"]/gm;
const dynamic = /\bimport\(\s*['"]([^'"]+)['"]/g;

export function readImports(source: string): Import[] {
  const found: Import[] = [];
  const lineOf = (index: number) => source.slice(0, index).split('\n').length;
  const code = blank(source, true);
  for (const match of code.matchAll(statement)) {
    const braces = /\{([^}]*)\}/.exec(match[2] ?? '')?.[1] ?? '';
    const names = braces
      .split(',')
      .map((part) => part.trim().split(/\s+as\s+/)[0] ?? '')
      .filter((name) => name !== '');
    found.push({ specifier: match[3] ?? '', typeOnly: match[1] !== undefined, names, line: lineOf(match.index) });
  }
  for (const match of code.matchAll(sideEffect)) {
    found.push({ specifier: match[1] ?? '', typeOnly: false, names: [], line: lineOf(match.index) });
  }
  for (const match of code.matchAll(dynamic)) {
    // In a type position (`import('x').Y`) it is erased; that form is not used here, so it counts as code.
    found.push({ specifier: match[1] ?? '', typeOnly: false, names: [], line: lineOf(match.index) });
  }
  return found;
}

/** The source with comments and the contents of strings and regular expressions turned to blanks; lines are kept. */
export function codeOnly(source: string): string {
  return blank(source, false);
}

const token =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=(?:[=(,:;!&|?[{}]|return|^)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/gm;

function blank(source: string, keepSpecifiers: boolean): string {
  const spaces = (text: string) => text.replace(/[^\n]/g, ' ');
  return source.replace(token, (text, offset: number) => {
    if (/^['"]/.test(text)) {
      const before = source.slice(Math.max(0, offset - 40), offset);
      return keepSpecifiers && /(?:\bfrom|\bimport|\bimport\()\s*$/.test(before) ? text : spaces(text);
    }
    if (!text.startsWith('`')) return spaces(text);
    return text.replace(/(^|\})[^$]*?(?=\$\{|$)/g, spaces);
  });
}
