// Loaded into a process beside its own work (`node --import`): how late a timer of 1 ms comes, as JSON in LATENESS_FILE at SIGUSR2.
import { writeFileSync } from 'node:fs';

const late = [];
let due = performance.now() + 1;
const tick = () => {
  const now = performance.now();
  late.push(Math.max(0, now - due));
  due = now + 1;
  setTimeout(tick, 1);
};
setTimeout(tick, 1);
process.on('SIGUSR2', () => {
  const sorted = late.splice(0).sort((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  writeFileSync(process.env.LATENESS_FILE, `${JSON.stringify({ count: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 })}\n`);
});
