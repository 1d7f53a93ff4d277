/**
 * A simulated week of ordinary traffic with attacks in it through the real detection: false alarms, attacks found and missed, delays.
 *
 * Destinations of many sizes with days, nights and a weekend, a flash crowd of each kind, a bulk transfer and a scan an hour; sampled
 * one in 1 000, default thresholds. Of each hour only the first minutes happen. Then how soon a flood of 8 000 packets/s, sampled one
 * in 16, is found, by threshold. Nothing is measured of the machine but the time that the week took.
 *
 * npm run bench -- detect-week [destinations = 2000] [minutes an hour = 5] [seed = 1]
 */
import { measureLatency } from '@levee/detector/detect/testing/latency.ts';
import { simulateWeek } from '@levee/detector/detect/testing/week.ts';

const [destinationsText = '2000', minutesText = '5', seedText = '1'] = process.argv.slice(2);
const minutes = Number(minutesText);
const destinations = Number(destinationsText);

const begun = performance.now();
const week = simulateWeek({
  hours: 168,
  minutes,
  destinations,
  sampling: 1_000,
  attacks: 250,
  seed: Number(seedText),
});
const seconds = (performance.now() - begun) / 1000;
const at = (sorted: readonly number[], part: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;

console.log(
  `${destinations} destinations, 168 hours of ${minutes} min, ${week.samples.toLocaleString('en-US')} samples, ${seconds.toFixed(0)} s`,
);
console.log(
  `attacks found ${week.found}, missed ${week.missed.length}, found twice ${week.repeated}, under another vector ${week.underOtherVector}`,
);
console.log(`delay, ms: median ${at(week.delays, 0.5)}, 90 % ${at(week.delays, 0.9)}, worst ${week.delays.at(-1)}`);
console.log(
  `ordinary events ${week.ordinaryEvents}: ${week.aboveThreshold.length} alarms where one was above its threshold`,
);
console.log(`false alarms ${week.falseAlarms.length} in ${((168 * minutes) / 60).toFixed(0)} h`);
for (const { attack, kind, part } of week.falseAlarms.slice(0, 20)) {
  const { dst, vectors, threshold } = attack;
  console.log(
    `  ${dst} ${vectors.join()} ${threshold.metric} ${threshold.observed} > ${threshold.value}: ${kind} at ${(100 * part).toFixed(0)} % of the threshold`,
  );
}
for (const { kind, dst, vector, pps } of week.missed.slice(0, 10))
  console.log(`  missed ${kind} ${dst} ${vector} ${Math.round(pps)} pps`);

console.log('first packet → found, 8 000 packets/s sampled 1:16, ms');
for (const threshold of [500, 1_000, 2_000, 4_000]) {
  const delays = measureLatency({ sampling: 16, pps: 8_000, threshold, rounds: 1_000, vector: 'tcp-syn' });
  console.log(
    `  threshold ${threshold}: median ${at(delays, 0.5).toFixed(0)}, worst ${(delays.at(-1) ?? 0).toFixed(0)}`,
  );
}
