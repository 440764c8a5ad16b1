/**
 * The commands that README.md shows, each with a mark in a comment above its fence that says how a test runs it.
 *
 * `<!-- runs: {"until": "…"} -->`: it goes on until stopped; the text must appear in its output, and TERM must end it.
 * `<!-- runs: {"exit": 0} -->`: it ends by itself with that status. `{"prints": "…"}`: repeated until a line matches.
 * `"with": "agent"`: while the README's own `pointsman run …` is running. The texts are regular expressions.
 */
export interface RunMark {
  readonly until?: string;
  readonly prints?: string;
  readonly exit?: number;
  readonly with?: 'agent';
  readonly withinSeconds?: number;
}

export interface Fence {
  readonly language: string;
  readonly text: string;
  readonly line: number;
  /** null: no mark, or none that can be read. */
  readonly mark: RunMark | null;
}

function markIn(line: string): RunMark | null {
  const json = /^<!-- runs: (\{.*\}) -->$/.exec(line)?.[1];
  if (json === undefined) return null;
  const mark = JSON.parse(json) as RunMark;
  const ways = [mark.until, mark.prints, mark.exit].filter((way) => way !== undefined);
  return ways.length === 1 ? mark : null;
}

/** Every fenced block of a Markdown text, with the mark in the line above it. */
export function fencesOf(markdown: string): Fence[] {
  const lines = markdown.split('\n');
  const fences: Fence[] = [];
  let start = -1;
  lines.forEach((line, index) => {
    if (!line.startsWith('```')) return;
    if (start < 0) {
      start = index;
      return;
    }
    const language = (lines[start] ?? '').slice(3).trim();
    fences.push({ language, text: lines.slice(start + 1, index).join('\n'), line: start + 1, mark: markIn(lines[start - 1] ?? '') });
    start = -1;
  });
  return fences;
}
