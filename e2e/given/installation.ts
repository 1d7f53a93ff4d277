/**
 * What a client of the given interface finds when it is handed its address and a key: an installation with a provider,
 * a location with a router, a reverse zone. Made by the operator, by what the page does not tell.
 */
import { Resolver } from 'node:dns/promises';
import { type ServedLevee, serveLevee } from '../served-levee.ts';

export interface Installation {
  readonly baseUrl: string;
  readonly providerKey: string;
  /** Issues a key of the account, as an operator would hand it to a customer. */
  keyOf(account: string): Promise<string>;
  /** An identifier of a supported filter kind. */
  readonly filterKind: number;
  /** An attack on the address, and a flowrule against it, of whoever holds it. */
  attacked(dst: string): Promise<{ readonly flowruleUuid: string }>;
  /** What the world's resolvers would be told: the names of the address, none when it has none. */
  namesOf(address: string): Promise<readonly string[]>;
  stop(): Promise<void>;
}

export async function startInstallation(): Promise<Installation> {
  const levee = await serveLevee();
  try {
    return await furnish(levee);
  } catch (error) {
    await levee.stop();
    throw error;
  }
}

async function furnish(levee: ServedLevee): Promise<Installation> {
  const { good, operatorKey } = levee;
  const prefixes = ['203.0.113.0/24', '2001:db8::/32'];
  const provider = await good('POST', '/operator/provider', operatorKey, { name: 'Example Hosting', prefixes });
  const providerKey = await levee.keyOf(provider.uuid);
  await good('POST', '/operator/location', operatorKey, { name: 'fra1' });
  await good('POST', '/operator/router', operatorKey, {
    name: 'edge-1',
    location: 'fra1',
    tunnel_addresses: ['192.0.2.1', '2001:db8:ffff::1'],
  });
  for (const zone of ['113.0.203.in-addr.arpa', '8.b.d.0.1.0.0.2.ip6.arpa']) {
    await good('POST', '/operator/rdns-zone', operatorKey, { zone, driver: 'embedded' });
  }
  const [kind] = await good('GET', '/filter/kind', providerKey);
  const resolver = new Resolver({ timeout: 2_000, tries: 3 });
  resolver.setServers([levee.dnsAddress]);
  return {
    baseUrl: `${levee.address}/v1`,
    providerKey,
    keyOf: (account) => levee.keyOf(account),
    filterKind: kind.id,
    async attacked(dst) {
      const { uuid } = await good('POST', '/operator/attack', operatorKey, { source: 'given', dst, state: 'started' });
      return { flowruleUuid: await levee.flowrule(dst, uuid) };
    },
    async namesOf(address) {
      try {
        return await resolver.reverse(address);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
        throw error;
      }
    },
    stop: () => levee.stop(),
  };
}
