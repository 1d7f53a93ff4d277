/**
 * What gobgpd had of the FlowSpec families when it was last asked, with what was told to it since: it has no lookup for them,
 * and listing 10 000 routes takes 0.2 s. Forgets a family as soon as gobgpd tells of a change in it that is not ours.
 */
import type { BgpRoute, RouteFamily, RouteKey } from '@levee/core/flowspec/bgp-route.ts';
import type { WithdrawnRoute } from '../port.ts';
import type { ListedPath, WatchedChange } from './messages.ts';

interface FamilyMemory {
  readonly ours: Map<RouteKey, string>;
  readonly foreign: Set<RouteKey>;
  isSure: boolean;
}

export class FlowMemory {
  readonly #families = new Map<RouteFamily, FamilyMemory>();
  #isTold = false;

  /** From now on gobgpd tells of every change. */
  begin(): void {
    this.#isTold = true;
  }

  /** Undefined: gobgpd is to be asked. */
  recall(family: RouteFamily): Pick<FamilyMemory, 'ours' | 'foreign'> | undefined {
    const known = this.#families.get(family);
    return known?.isSure === true ? known : undefined;
  }

  /** To be called before it is listed: a change that comes meanwhile may be missing in the list. Returns what to call with each path. */
  relearn(family: RouteFamily): (path: ListedPath, isOurs: boolean) => void {
    const memory: FamilyMemory = { ours: new Map(), foreign: new Set(), isSure: this.#isTold };
    this.#families.set(family, memory);
    return ({ key, content, isFromPeer }, isOurs) => {
      // A change behind a peer's better route is not told of.
      if (isFromPeer) memory.isSure = false;
      else if (isOurs) memory.ours.set(key, content);
      else memory.foreign.add(key);
    };
  }

  changed({ family, isOurs }: WatchedChange): void {
    const known = this.#families.get(family);
    if (known !== undefined && !isOurs) known.isSure = false;
  }

  announced({ family, key, content }: BgpRoute): void {
    this.#families.get(family)?.ours.set(key, content);
  }

  withdrawn({ key }: WithdrawnRoute): void {
    for (const { ours } of this.#families.values()) ours.delete(key);
  }
}
