// Made by `node tools/record-answers.ts` from a run against a real server; not to be edited.
export const recordedAnswers: Readonly<Record<string, unknown>> = {};
export const recordedErrors: Readonly<Record<string, unknown>> = {};
