/**
 * Which error a violated constraint stands for. Every constraint that a caller's input can violate is here; one that
 * is not is a bug of ours. Names are those of migrations/*.sql (constraints.test.ts compares them with the catalogue).
 */

/** Codes of contract's error table. */
export type ViolationCode =
  | 'already_exists'
  | 'ip_in_use'
  | 'ip_not_allowed'
  | 'subnet_already_routed'
  | 'conflict'
  | 'not_found';

export interface Violation {
  readonly code: ViolationCode;
  /** JSON pointer to the field of the request, where there is one. */
  readonly field?: string;
}

export const violations: Readonly<Record<string, Violation>> = {
  account_username: { code: 'already_exists', field: '/username' },
  account_email: { code: 'already_exists', field: '/email' },
  account_provider_name: { code: 'already_exists', field: '/name' },
  subnet_pkey: { code: 'already_exists', field: '/ips' },
  subnet_provider_overlap: { code: 'ip_in_use', field: '/prefixes' },
  subnet_user_overlap: { code: 'ip_in_use', field: '/ips' },
  // The provider lost the prefix, or the user the subnet, after the command looked it up.
  subnet_provider_holds: { code: 'ip_not_allowed', field: '/ips' },
  subnet_inside_provider: { code: 'ip_not_allowed', field: '/ips' },
  firewall_rule_subnet: { code: 'ip_not_allowed', field: '/dst' },
  firewall_rule_inside_subnet: { code: 'ip_not_allowed', field: '/dst' },
  filter_subnet: { code: 'ip_not_allowed', field: '/dst' },
  filter_inside_subnet: { code: 'ip_not_allowed', field: '/dst' },
  tunnel_subnet_overlap: { code: 'subnet_already_routed', field: '/ips' },
  // The owner lost the subnet after the command looked it up.
  tunnel_subnet_held: { code: 'ip_not_allowed', field: '/ips' },
  rdns_record_subnet: { code: 'ip_not_allowed', field: '/ips' },
  router_address_taken: { code: 'already_exists', field: '/tunnel_addresses' },
  // A router got the address, or the tunnel the subnet or endpoint, after the command looked it up.
  tunnel_subnet_no_router: { code: 'conflict', field: '/ips' },
  tunnel_endpoint_no_router: { code: 'conflict', field: '/endpoint' },
  tunnel_subnet_no_circle: { code: 'conflict', field: '/ips' },
  tunnel_endpoint_no_circle: { code: 'conflict', field: '/endpoint' },
  router_address_not_routed: { code: 'conflict', field: '/tunnel_addresses' },
  router_address_no_endpoint: { code: 'conflict', field: '/tunnel_addresses' },
  location_name: { code: 'already_exists', field: '/name' },
  router_name: { code: 'already_exists', field: '/name' },
  detector_name: { code: 'already_exists', field: '/name' },
  exporter_name: { code: 'already_exists', field: '/name' },
  exporter_source: { code: 'already_exists', field: '/source' },
  detection_policy_scope: { code: 'already_exists', field: '/scope' },
  // The account went after the command looked it up.
  detection_policy_account: { code: 'not_found', field: '/scope' },
  router_location: { code: 'not_found', field: '/location' },
  flowrule_nlri: { code: 'already_exists', field: '/components' },
  // The provider lost the prefix after the command looked it up.
  flowrule_prefix: { code: 'ip_not_allowed', field: '/dst' },
  idempotency_pkey: { code: 'conflict' },
};
