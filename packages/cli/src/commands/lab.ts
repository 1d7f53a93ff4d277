/**
 * Owns `levee lab`: gives the lab a Levee of its own, in a folder that is gone afterwards, with its edge in the lab's
 * router. Must never touch an installation that exists.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LabControl, type LabPlace, runLab } from '@levee/lab/demo.ts';
import { loadConfig } from '../config/load.ts';
import { CommandFailure, type Output } from '../output.ts';
import { startInstallation } from '../supervise/installation.ts';

export async function lab(output: Output): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'levee-lab-'));
  try {
    const result = await runLab({
      startLevee: (place) => startLevee(place, folder, output),
      output: output.format === 'json' ? process.stderr : process.stdout,
    });
    if (output.format === 'json') output.result('', result);
    if (result.interrupted) process.exitCode = 130;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startLevee(place: LabPlace, folder: string, output: Output): Promise<LabControl> {
  const options = {
    listen: '127.0.0.1:0',
    dataDirectory: folder,
    flowListen: 'off',
    edgeDriver: 'kernel',
    edgeNetns: place.routerNetns,
    edgeIngressDevices: place.ingressDevices.join(','),
  };
  const loaded = loadConfig({ environment: {}, options, file: null });
  if (!loaded.ok) throw new CommandFailure(loaded.problems.join('\n'));
  const running = await startInstallation(loaded.loaded, output);
  try {
    const { enforcement, ready } = running;
    if (enforcement.mode !== 'kernel') throw new CommandFailure(`nothing is enforced: ${enforcement.reason}`);
    const baseUrl = `${ready.address}/v1`;
    const operator = ready.newOperatorKey ?? '';
    const provider = await post(`${baseUrl}/operator/provider`, operator, { name: 'lab', prefixes: place.prefixes });
    const body = { account_uuid: provider.uuid, name: 'lab' };
    const { key } = await post(`${baseUrl}/api-key`, operator, body);
    return { baseUrl, key: String(key), stop: () => running.stop() };
  } catch (error) {
    await running.stop();
    throw error;
  }
}

async function post(url: string, key: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new CommandFailure(`${url} answered ${response.status}: ${answer.message}`);
  return answer;
}
