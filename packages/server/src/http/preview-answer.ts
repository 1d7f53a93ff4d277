/** Renders what a draft rule would have matched as JSON text. */
import type { Amount } from '@levee/core/firewall/preview.ts';
import { type NoSamples, PREVIEW_SECONDS, type RulePreview } from '../commands/preview-rule.ts';
import { timeText } from './object-answer.ts';

const minutes = PREVIEW_SECONDS / 60;

const reasons: Readonly<Record<NoSamples, (dst: string) => string>> = {
  no_detector: () => 'No detector is connected: nobody holds samples of traffic.',
  no_answer: () => 'No detector has answered within two seconds.',
  no_samples: (dst) =>
    `No packet to ${dst} was sampled within the last ${minutes} minutes, or since you hold it: there was no traffic, or none of the exporters sends ` +
    "packets' headers.",
};

export function renderPreview(dst: string, { preview, held, sinceMs, untilMs, reason }: RulePreview): string {
  const { looked, matched, undecided, matchedShare, matchedNow, newlyDiscarded, newlyAccepted, unclear } = preview;
  return JSON.stringify({
    dst,
    samples: looked.samples,
    packets: looked.packets,
    held,
    ...(sinceMs !== undefined && { since: timeText(sinceMs) }),
    ...(untilMs !== undefined && { until: timeText(untilMs) }),
    ...(reason !== undefined && { reason: { code: reason, message: reasons[reason](dst) } }),
    matched: matched.samples,
    matched_packets: matched.packets,
    matched_share: matchedShare,
    undecided: undecided.samples,
    undecided_packets: undecided.packets,
    of: matchedNow,
    changes: {
      newly_discarded: newlyDiscarded,
      newly_accepted: newlyAccepted,
      unclear,
    } satisfies Record<string, Amount>,
    examples: preview.examples.map(({ atMs, ...rest }) => ({ at: timeText(atMs), ...rest })),
    top_sources: preview.topSources,
  });
}
