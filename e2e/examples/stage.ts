/** A fresh installation for the run of the examples, and the few things that no example can make. */
import assert from 'node:assert/strict';
import { type ServedLevee, serveLevee } from '../served-levee.ts';

export interface Stage extends ServedLevee {
  readonly document: { readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
  serves(method: string, path: string): boolean;
  readonly filterKinds: readonly number[];
  /** A change of this caller's that awaits its confirmation. */
  unconfirmedChange(key: string): Promise<string>;
}

export async function startStage(): Promise<Stage> {
  const levee = await serveLevee();
  try {
    const document = await levee.good('GET', '/openapi.json', levee.operatorKey);
    const serves = (method: string, path: string) => document.paths[path]?.[method.toLowerCase()] !== undefined;
    const kinds = serves('GET', '/filter/kind') ? await levee.good('GET', '/filter/kind', levee.operatorKey) : [];
    return {
      ...levee,
      document,
      serves,
      filterKinds: kinds.map(({ id }: { id: number }) => id),
      async unconfirmedChange(key) {
        const rule = { dst: '203.0.113.9', protocol: 'udp', action: 'drop', confirm_within: 600 };
        const { change_uuid } = await levee.good('POST', '/firewall/rule', key, rule);
        assert.equal(typeof change_uuid, 'string');
        return change_uuid;
      },
    };
  } catch (error) {
    await levee.stop();
    throw error;
  }
}
