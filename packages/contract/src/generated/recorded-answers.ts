// Made by `node tools/record-answers.ts` from a run against a real server; not to be edited.
export const recordedAnswers: Readonly<Record<string, unknown>> = {
  "addUserIps": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "username": "alice",
    "email": "alice@example.net",
    "name": "Alice",
    "ips": [
      "203.0.113.0/28",
      "203.0.113.16/28"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "announceFlowrule": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "proposed",
    "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
    "dst": "203.0.113.7",
    "components": {
      "protocol": "udp",
      "source-port": "53",
      "packet-length": "1080-65535"
    },
    "action": "discard",
    "applied": [],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "origin": "operator",
    "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
  },
  "changeDetectionPolicy": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa007",
    "scope": "203.0.113.0/28",
    "thresholds": {
      "tcp-syn": {
        "pps": 20000
      },
      "total": {
        "pps": 500000,
        "bps": 5000000000
      }
    },
    "mitigation": "flowspec",
    "hold_s": 60,
    "baseline_factor": 3,
    "mitigation_hold_s": 300,
    "override_accept": false,
    "allow_rtbh": false,
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "changeExporter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa008",
    "name": "edge1",
    "source": "192.0.2.1",
    "sampling": 1024,
    "interfaces": [
      1,
      2
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "changeFirewallRule": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "disabled",
    "dst": "203.0.113.7",
    "protocol": "udp",
    "action": "drop",
    "priority": 10,
    "descr": "no memcached replies",
    "port": {
      "src": {
        "start": 11211,
        "end": 11211
      }
    },
    "disabled": true,
    "applied": [
      {
        "location": "fra1",
        "router": "edge1",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "hits": {
      "packets": 0,
      "bytes": 0
    }
  },
  "changeProvider": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "name": "Example Hosting",
    "prefixes": [
      "192.0.2.0/24",
      "203.0.113.0/24"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "removed": {
      "firewall_rules": 0,
      "filters": 0,
      "tunnels": 0,
      "rdns": 0,
      "flowrules": 0
    },
    "tunnels_changed": 0
  },
  "changeRdnsZone": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa003",
    "zone": "113.0.203.in-addr.arpa",
    "driver": "embedded",
    "covers": [
      "203.0.113.0/24"
    ],
    "nameservers": [
      "ns1.example.net",
      "ns2.example.net"
    ],
    "ttl": 3600,
    "serial": 1769860800,
    "status": {
      "records_applied": 0,
      "records_pending": 1,
      "records_failed": 0,
      "secondaries": []
    },
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "message": "All records of the zone are applied anew."
  },
  "changeRouter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa002",
    "name": "edge1",
    "location": "fra1",
    "tunnel_addresses": [
      "192.0.2.1",
      "2001:db8:ffff::1"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "enrolled": true,
    "enrolled_at": "2026-01-31T12:00:00.000Z",
    "enforcement": "kernel",
    "last_seen_at": "2026-01-31T12:00:00.000Z"
  },
  "changeTunnel": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00c",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "ips": [
      "203.0.113.0/28"
    ],
    "endpoint": "198.51.100.10",
    "type": "GRE",
    "applied": [
      {
        "location": "fra1",
        "router": "edge1",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "tunnel_information": [
      {
        "location": "fra1",
        "router": "edge1",
        "local_endpoint": "192.0.2.1",
        "remote_endpoint": "198.51.100.10",
        "inner_ipv4": {
          "router": "10.48.0.2",
          "customer": "10.48.0.3",
          "prefix_length": 31
        },
        "inner_ipv6": {
          "router": "fd6c:6576:6565::2",
          "customer": "fd6c:6576:6565::3",
          "prefix_length": 127
        },
        "key": 1,
        "mtu": 1472,
        "mss": 1432,
        "mss_ipv6": 1412,
        "state": "active"
      }
    ]
  },
  "changeWebhook": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "url": "https://hooks.example.net/levee",
    "events": [
      "*"
    ],
    "disabled": false,
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "confirmChange": {
    "change_uuid": "01890a5d-ac96-774b-bcce-b302099aa010",
    "confirmed_at": "2026-01-31T12:00:00.000Z",
    "message": "The change is confirmed and stays."
  },
  "createApiKey": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00e",
    "account_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "name": "deploy",
    "read_only": true,
    "sources": [
      "198.51.100.0/24"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "key": "lv_u_ExampleExampleExampleExampleExampleExampleE_Exampl"
  },
  "createDetectionPolicy": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa007",
    "scope": "203.0.113.0/28",
    "thresholds": {
      "tcp-syn": {
        "pps": 20000
      },
      "total": {
        "pps": 500000,
        "bps": 5000000000
      }
    },
    "mitigation": "edge",
    "hold_s": 60,
    "baseline_factor": 3,
    "mitigation_hold_s": 300,
    "override_accept": false,
    "allow_rtbh": false,
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "createDetector": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa009",
    "name": "detect1",
    "created_at": "2026-01-31T12:00:00.000Z",
    "key": "lv_d_ExampleExampleExampleExampleExampleExampleE_Exampl"
  },
  "createExporter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa008",
    "name": "edge1",
    "source": "192.0.2.1",
    "sampling": "auto",
    "interfaces": [
      1,
      2
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "createFilter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00b",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "dst": "203.0.113.7",
    "filter": 10,
    "priority": 1000,
    "port": {
      "dst": {
        "start": 27015,
        "end": 27020
      }
    },
    "ratelimit": 500,
    "applied": [
      {
        "location": "fra1",
        "router": "edge1",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "hits": {
      "packets": 0,
      "bytes": 0
    }
  },
  "createFirewallRule": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "dst": "203.0.113.7",
    "protocol": "udp",
    "action": "drop",
    "priority": 10,
    "descr": "no memcached replies",
    "port": {
      "src": {
        "start": 11211,
        "end": 11211
      }
    },
    "disabled": false,
    "applied": [
      {
        "location": "fra1",
        "router": "edge1",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "hits": {
      "packets": 0,
      "bytes": 0
    }
  },
  "createLocation": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa001",
    "name": "fra1",
    "created_at": "2026-01-31T12:00:00.000Z"
  },
  "createProvider": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "name": "Example Hosting",
    "prefixes": [
      "203.0.113.0/24",
      "2001:db8::/32"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "createRdns": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00d",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "ips": "203.0.113.7",
    "record": "mail.example.net",
    "applied": [
      {
        "zone": "113.0.203.in-addr.arpa",
        "driver": "embedded",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "createRdnsZone": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa003",
    "zone": "113.0.203.in-addr.arpa",
    "driver": "embedded",
    "covers": [
      "203.0.113.0/24"
    ],
    "nameservers": [
      "ns1.example.net",
      "ns2.example.net"
    ],
    "ttl": 300,
    "serial": 1769860800,
    "status": {
      "records_applied": 0,
      "records_pending": 0,
      "records_failed": 0,
      "secondaries": []
    },
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "createRouter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa002",
    "name": "edge1",
    "location": "fra1",
    "tunnel_addresses": [
      "192.0.2.1",
      "2001:db8:ffff::1"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "enrollment_token": "ExampleExampleExampleExampleExam",
    "enrollment_expires_at": "2026-01-31T13:00:00.000Z"
  },
  "createTunnel": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00c",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "ips": [
      "203.0.113.0/28"
    ],
    "endpoint": "198.51.100.9",
    "type": "GRE",
    "applied": [
      {
        "location": "fra1",
        "router": "edge1",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "tunnel_information": [
      {
        "location": "fra1",
        "router": "edge1",
        "local_endpoint": "192.0.2.1",
        "remote_endpoint": "198.51.100.9",
        "inner_ipv4": {
          "router": "10.48.0.2",
          "customer": "10.48.0.3",
          "prefix_length": 31
        },
        "inner_ipv6": {
          "router": "fd6c:6576:6565::2",
          "customer": "fd6c:6576:6565::3",
          "prefix_length": 127
        },
        "key": 1,
        "mtu": 1472,
        "mss": 1432,
        "mss_ipv6": 1412,
        "state": "active"
      }
    ]
  },
  "createUser": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "username": "alice",
    "email": "alice@example.net",
    "name": "Alice",
    "ips": [
      "203.0.113.0/28"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "createWebhook": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "url": "https://hooks.example.net/levee",
    "events": [
      "firewall_rule.failed",
      "attack.*"
    ],
    "disabled": false,
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "secret": "whsec_ExampleExampleExampleExampleExampleExampleE="
  },
  "deleteDetectionPolicy": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa007",
    "message": "The policy is removed: the next wider one is in force."
  },
  "deleteDetector": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa009",
    "message": "The detector is removed: its key is void and its stream has ended."
  },
  "deleteExporter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa008",
    "message": "The exporter is removed: what it sends from now on is counted and thrown away."
  },
  "deleteFilter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00b",
    "state": "marked_for_deletion",
    "message": "The filter is marked for deletion."
  },
  "deleteFirewallRule": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
    "state": "marked_for_deletion",
    "message": "The firewall rule is marked for deletion."
  },
  "deleteLocation": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa001",
    "message": "The location is removed."
  },
  "deleteRdns": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00d",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "marked_for_deletion",
    "ips": "203.0.113.7",
    "record": "mail.example.net",
    "applied": [
      {
        "zone": "113.0.203.in-addr.arpa",
        "driver": "embedded",
        "state": "removed"
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "message": "The rDNS record is marked for deletion."
  },
  "deleteRdnsZone": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa003",
    "message": "The zone is let go of: what its server holds stays there, and the records here wait for a zone that covers them."
  },
  "deleteRouter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa002",
    "message": "The router is removed: its key is void, and nothing waits for it any more."
  },
  "deleteTunnel": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00c",
    "state": "marked_for_deletion",
    "message": "The tunnel is marked for deletion."
  },
  "deleteUser": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "marked_for_deletion",
    "message": "The user is marked for deletion.",
    "removed": {
      "firewall_rules": 3,
      "filters": 0,
      "tunnels": 0,
      "rdns": 0
    }
  },
  "deleteUserIps": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "username": "alice",
    "email": "alice@example.net",
    "name": "Alice",
    "ips": [
      "203.0.113.0/28"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "removed": {
      "firewall_rules": 0,
      "filters": 0,
      "tunnels": 0,
      "rdns": 0
    },
    "tunnels_changed": 0
  },
  "deleteWebhook": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "message": "The webhook is deleted, with its deliveries."
  },
  "explainPacket": {
    "verdict": "drop",
    "decided_by": "01890a5d-ac96-774b-bcce-b302099aa00a",
    "trail": [
      {
        "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
        "priority": 10,
        "action": "drop",
        "matched": true,
        "code": "dropped",
        "message": "the packet matches and is dropped"
      }
    ]
  },
  "keepFlowrule": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "proposed",
    "state_reason": "The policy stops at the edge: nothing is announced.",
    "dst": "203.0.113.7",
    "components": {
      "protocol": "udp",
      "source-port": "53",
      "packet-length": "1080-65535"
    },
    "action": "discard",
    "applied": [],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "origin": "operator",
    "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
  },
  "keepMeasure": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa014",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "pending",
    "state_reason": "edge1: the router has not put it in force yet",
    "dst": "203.0.113.7",
    "protocol": "udp",
    "action": "drop",
    "priority": 2147483648,
    "descr": "Against udp-amplification",
    "port": {
      "src": {
        "start": 53
      }
    },
    "disabled": false,
    "statetype": "new",
    "applied": [
      {
        "location": "fra1",
        "router": "edge1",
        "state": "pending",
        "reason": "the router has not put it in force yet"
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "hits": {
      "packets": 0,
      "bytes": 0
    },
    "origin": "operator",
    "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
  },
  "listAllAttacks": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa005",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "scrubbing-centre",
      "external_id": "incident-4711",
      "vectors": [
        "udp-amplification-dns"
      ],
      "started_at": "2025-04-13T03:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 1250000,
      "peak_bps": 9800000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa006",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "fastnetmon",
      "external_id": "7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11",
      "vectors": [
        "udp"
      ],
      "started_at": "2026-01-31T12:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 812000,
      "peak_bps": 5120000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listAllFlowrules": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "source-port": "53",
        "packet-length": "1080-65535"
      },
      "action": "discard",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "operator",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa016",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "fragment": "is-fragment"
      },
      "action": "rate-limit",
      "ratelimit": 12000000,
      "expires_at": "2026-01-31T13:00:00.000Z",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "attack",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    }
  ],
  "listApiKeys": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa018",
      "account_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "name": "test",
      "read_only": false,
      "created_at": "2026-01-31T12:00:00.000Z"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00e",
      "account_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "name": "deploy",
      "read_only": true,
      "sources": [
        "198.51.100.0/24"
      ],
      "created_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listAttacks": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa005",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "scrubbing-centre",
      "external_id": "incident-4711",
      "vectors": [
        "udp-amplification-dns"
      ],
      "started_at": "2025-04-13T03:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 1250000,
      "peak_bps": 9800000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa006",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "fastnetmon",
      "external_id": "7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11",
      "vectors": [
        "udp"
      ],
      "started_at": "2026-01-31T12:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 812000,
      "peak_bps": 5120000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listAudit": [
    {
      "sequence": 8,
      "at": "2026-01-31T12:00:00.000Z",
      "operation": "createUser",
      "kind": "account",
      "object_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "actor": {
        "uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
        "role": "provider"
      },
      "after": {
        "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
        "state": "active",
        "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
        "username": "alice",
        "email": "alice@example.net",
        "name": "Alice",
        "ips": [
          "203.0.113.0/28"
        ],
        "created_at": "2026-01-31T12:00:00.000Z",
        "updated_at": "2026-01-31T12:00:00.000Z"
      }
    },
    {
      "sequence": 9,
      "at": "2026-01-31T12:00:00.000Z",
      "operation": "createApiKey",
      "kind": "api_key",
      "object_uuid": "01890a5d-ac96-774b-bcce-b302099aa018",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "actor": {
        "uuid": "01890a5d-ac96-774b-bcce-b302099aa038",
        "role": "operator"
      },
      "after": {
        "uuid": "01890a5d-ac96-774b-bcce-b302099aa018",
        "account_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
        "name": "test",
        "read_only": false,
        "created_at": "2026-01-31T12:00:00.000Z"
      }
    }
  ],
  "listDetectionPolicies": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa007",
      "scope": "203.0.113.0/28",
      "thresholds": {
        "tcp-syn": {
          "pps": 20000
        },
        "total": {
          "pps": 500000,
          "bps": 5000000000
        }
      },
      "mitigation": "flowspec",
      "hold_s": 60,
      "baseline_factor": 3,
      "mitigation_hold_s": 300,
      "override_accept": false,
      "allow_rtbh": false,
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listDetectors": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa009",
      "name": "detect1",
      "created_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listExporters": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa008",
      "name": "edge1",
      "source": "192.0.2.1",
      "sampling": 1024,
      "interfaces": [
        1,
        2
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listFilterKinds": [
    {
      "id": 1,
      "name": "tcp-syn-protect",
      "label": "TCP SYN flood protection",
      "description": "Answers each new TCP connection in the server's place, by SYN cookies, and hands it over once the client has answered back: SYNs from forged addresses never reach the server. Packets with combinations of flags that no TCP sends are discarded.",
      "limits": [
        "Connections from real addresses pass, however many; ratelimit and rules bound them.",
        "The router takes part in the handshake. Clients with timestamps get window scaling and selective acknowledgements; others, which Windows is by default, get neither: a window of 64 KiB makes their transfers over long ways slow, and losses cost more. Other options, such as ECN, Fast Open and Multipath TCP, are not negotiated."
      ],
      "families": [
        "ipv4",
        "ipv6"
      ],
      "transports": [
        "tcp"
      ],
      "default_ports": [],
      "memory": "connection",
      "needs_return_path": true,
      "fields": [
        {
          "name": "dst",
          "type": "prefix",
          "required": true
        },
        {
          "name": "port.dst",
          "type": "port_range",
          "required": false,
          "minimum": 0,
          "maximum": 65535
        }
      ]
    },
    {
      "id": 2,
      "name": "tcp-symmetric",
      "label": "TCP only of known connections",
      "description": "Passes TCP packets only of connections whose handshake the router has seen in both directions; floods of stray ACK, SYN-ACK, RST and data packets are discarded, and so are combinations of flags that no TCP sends.",
      "limits": [
        "One source may send 100 SYNs a second (300 at once).",
        "A connection that ran before and is silent in these seconds goes on only when the server sends first."
      ],
      "families": [
        "ipv4",
        "ipv6"
      ],
      "transports": [
        "tcp"
      ],
      "default_ports": [],
      "memory": "connection",
      "needs_return_path": true,
      "fields": [
        {
          "name": "dst",
          "type": "prefix",
          "required": true
        },
        {
          "name": "port.dst",
          "type": "port_range",
          "required": false,
          "minimum": 0,
          "maximum": 65535
        }
      ]
    }
  ],
  "listFilters": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00b",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "dst": "203.0.113.7",
      "filter": 10,
      "priority": 1000,
      "port": {
        "dst": {
          "start": 27015,
          "end": 27020
        }
      },
      "ratelimit": 500,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    }
  ],
  "listFirewallRules": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "disabled",
      "dst": "203.0.113.7",
      "protocol": "udp",
      "action": "drop",
      "priority": 10,
      "descr": "no memcached replies",
      "port": {
        "src": {
          "start": 11211,
          "end": 11211
        }
      },
      "disabled": true,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa015",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "dst": "203.0.113.9",
      "protocol": "udp",
      "action": "drop",
      "priority": 1000,
      "disabled": false,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    }
  ],
  "listFlowrules": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "source-port": "53",
        "packet-length": "1080-65535"
      },
      "action": "discard",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "operator",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa016",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "The policy stops at the edge: nothing is announced.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "fragment": "is-fragment"
      },
      "action": "rate-limit",
      "ratelimit": 12000000,
      "expires_at": "2026-01-31T13:00:00.000Z",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "attack",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    }
  ],
  "listLocations": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa001",
      "name": "fra1",
      "created_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listProviderAttacks": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa005",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "scrubbing-centre",
      "external_id": "incident-4711",
      "vectors": [
        "udp-amplification-dns"
      ],
      "started_at": "2025-04-13T03:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 1250000,
      "peak_bps": 9800000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa006",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "fastnetmon",
      "external_id": "7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11",
      "vectors": [
        "udp"
      ],
      "started_at": "2026-01-31T12:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 812000,
      "peak_bps": 5120000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listProviderFilterKinds": [
    {
      "id": 1,
      "name": "tcp-syn-protect",
      "label": "TCP SYN flood protection",
      "description": "Answers each new TCP connection in the server's place, by SYN cookies, and hands it over once the client has answered back: SYNs from forged addresses never reach the server. Packets with combinations of flags that no TCP sends are discarded.",
      "limits": [
        "Connections from real addresses pass, however many; ratelimit and rules bound them.",
        "The router takes part in the handshake. Clients with timestamps get window scaling and selective acknowledgements; others, which Windows is by default, get neither: a window of 64 KiB makes their transfers over long ways slow, and losses cost more. Other options, such as ECN, Fast Open and Multipath TCP, are not negotiated."
      ],
      "families": [
        "ipv4",
        "ipv6"
      ],
      "transports": [
        "tcp"
      ],
      "default_ports": [],
      "memory": "connection",
      "needs_return_path": true,
      "fields": [
        {
          "name": "dst",
          "type": "prefix",
          "required": true
        },
        {
          "name": "port.dst",
          "type": "port_range",
          "required": false,
          "minimum": 0,
          "maximum": 65535
        }
      ]
    },
    {
      "id": 2,
      "name": "tcp-symmetric",
      "label": "TCP only of known connections",
      "description": "Passes TCP packets only of connections whose handshake the router has seen in both directions; floods of stray ACK, SYN-ACK, RST and data packets are discarded, and so are combinations of flags that no TCP sends.",
      "limits": [
        "One source may send 100 SYNs a second (300 at once).",
        "A connection that ran before and is silent in these seconds goes on only when the server sends first."
      ],
      "families": [
        "ipv4",
        "ipv6"
      ],
      "transports": [
        "tcp"
      ],
      "default_ports": [],
      "memory": "connection",
      "needs_return_path": true,
      "fields": [
        {
          "name": "dst",
          "type": "prefix",
          "required": true
        },
        {
          "name": "port.dst",
          "type": "port_range",
          "required": false,
          "minimum": 0,
          "maximum": 65535
        }
      ]
    }
  ],
  "listProviderFilters": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00b",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "dst": "203.0.113.7",
      "filter": 10,
      "priority": 1000,
      "port": {
        "dst": {
          "start": 27015,
          "end": 27020
        }
      },
      "ratelimit": 500,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    }
  ],
  "listProviderFirewallRules": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "disabled",
      "dst": "203.0.113.7",
      "protocol": "udp",
      "action": "drop",
      "priority": 10,
      "descr": "no memcached replies",
      "port": {
        "src": {
          "start": 11211,
          "end": 11211
        }
      },
      "disabled": true,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa015",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "dst": "203.0.113.9",
      "protocol": "udp",
      "action": "drop",
      "priority": 1000,
      "disabled": false,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    }
  ],
  "listProviderFlowrules": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "source-port": "53",
        "packet-length": "1080-65535"
      },
      "action": "discard",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "operator",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa016",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "fragment": "is-fragment"
      },
      "action": "rate-limit",
      "ratelimit": 12000000,
      "expires_at": "2026-01-31T13:00:00.000Z",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "attack",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    }
  ],
  "listProviderTunnels": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00c",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "ips": [
        "203.0.113.0/28"
      ],
      "endpoint": "198.51.100.10",
      "type": "GRE",
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "tunnel_information": [
        {
          "location": "fra1",
          "router": "edge1",
          "local_endpoint": "192.0.2.1",
          "remote_endpoint": "198.51.100.10",
          "inner_ipv4": {
            "router": "10.48.0.2",
            "customer": "10.48.0.3",
            "prefix_length": 31
          },
          "inner_ipv6": {
            "router": "fd6c:6576:6565::2",
            "customer": "fd6c:6576:6565::3",
            "prefix_length": 127
          },
          "key": 1,
          "mtu": 1472,
          "mss": 1432,
          "mss_ipv6": 1412,
          "state": "active",
          "probe": {
            "rtt_ms": {
              "min": 11.6,
              "avg": 11.6,
              "max": 11.6
            },
            "loss_percent": 0,
            "last_answer_at": "2026-01-31T12:00:00.000Z",
            "at": "2026-01-31T12:00:00.000Z"
          }
        }
      ]
    }
  ],
  "listProviders": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
      "name": "Example Hosting",
      "prefixes": [
        "192.0.2.0/24",
        "203.0.113.0/24"
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listRdns": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00d",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "ips": "203.0.113.7",
      "record": "mail.example.net",
      "applied": [
        {
          "zone": "113.0.203.in-addr.arpa",
          "driver": "embedded",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listRdnsZones": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa003",
      "zone": "113.0.203.in-addr.arpa",
      "driver": "embedded",
      "covers": [
        "203.0.113.0/24"
      ],
      "nameservers": [
        "ns1.example.net",
        "ns2.example.net"
      ],
      "ttl": 3600,
      "serial": 1769860800,
      "status": {
        "reachable": true,
        "checked_at": "2026-01-31T12:00:00.000Z",
        "records_applied": 1,
        "records_pending": 0,
        "records_failed": 0,
        "secondaries": []
      },
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listRouters": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa002",
      "name": "edge1",
      "location": "fra1",
      "tunnel_addresses": [
        "192.0.2.1",
        "2001:db8:ffff::1"
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "enrolled": true,
      "enrolled_at": "2026-01-31T12:00:00.000Z",
      "enforcement": "kernel",
      "last_seen_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listTunnels": {
    "tunnels": [
      {
        "uuid": "01890a5d-ac96-774b-bcce-b302099aa00c",
        "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
        "state": "active",
        "ips": [
          "203.0.113.0/28"
        ],
        "endpoint": "198.51.100.10",
        "type": "GRE",
        "applied": [
          {
            "location": "fra1",
            "router": "edge1",
            "state": "active",
            "at": "2026-01-31T12:00:00.000Z",
            "latency_ms": 12
          }
        ],
        "created_at": "2026-01-31T12:00:00.000Z",
        "updated_at": "2026-01-31T12:00:00.000Z",
        "tunnel_information": [
          {
            "location": "fra1",
            "router": "edge1",
            "local_endpoint": "192.0.2.1",
            "remote_endpoint": "198.51.100.10",
            "inner_ipv4": {
              "router": "10.48.0.2",
              "customer": "10.48.0.3",
              "prefix_length": 31
            },
            "inner_ipv6": {
              "router": "fd6c:6576:6565::2",
              "customer": "fd6c:6576:6565::3",
              "prefix_length": 127
            },
            "key": 1,
            "mtu": 1472,
            "mss": 1432,
            "mss_ipv6": 1412,
            "state": "active",
            "probe": {
              "rtt_ms": {
                "min": 11.6,
                "avg": 11.6,
                "max": 11.6
              },
              "loss_percent": 0,
              "last_answer_at": "2026-01-31T12:00:00.000Z",
              "at": "2026-01-31T12:00:00.000Z"
            }
          }
        ]
      }
    ]
  },
  "listUsers": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
      "username": "alice",
      "email": "alice@example.net",
      "name": "Alice",
      "ips": [
        "203.0.113.0/28",
        "203.0.113.16/28"
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "listWebhookDeliveries": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa036",
      "webhook_uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
      "event": "attack.changed",
      "event_id": "5f0c3a9e-23",
      "state": "pending",
      "created_at": "2026-01-31T12:00:00.000Z",
      "next_attempt_at": "2026-01-31T12:00:00.000Z",
      "attempts": []
    },
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa037",
      "webhook_uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
      "event": "flowrule.proposed",
      "event_id": "5f0c3a9e-22",
      "state": "pending",
      "created_at": "2026-01-31T12:00:00.000Z",
      "next_attempt_at": "2026-01-31T12:00:00.000Z",
      "attempts": []
    }
  ],
  "listWebhooks": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "failing",
      "state_reason": "The last attempt: hooks.example.net refuses connections to port 443.",
      "url": "https://hooks.example.net/levee",
      "events": [
        "*"
      ],
      "disabled": false,
      "failing_since": "2026-01-31T12:00:00.000Z",
      "former_secret_valid_until": "2026-02-01T12:00:00.000Z",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z"
    }
  ],
  "previewFirewallRule": {
    "dst": "203.0.113.7",
    "samples": 3,
    "packets": 48,
    "held": 3,
    "since": "2026-01-31T12:00:00.000Z",
    "until": "2026-01-31T12:00:00.000Z",
    "matched": 3,
    "matched_packets": 48,
    "matched_share": 1,
    "undecided": 0,
    "undecided_packets": 0,
    "of": {
      "accept": {
        "samples": 3,
        "packets": 48
      }
    },
    "changes": {
      "newly_discarded": {
        "samples": 3,
        "packets": 48
      },
      "newly_accepted": {
        "samples": 0,
        "packets": 0
      },
      "unclear": {
        "samples": 0,
        "packets": 0
      }
    },
    "examples": [
      {
        "at": "2026-01-31T12:00:00.000Z",
        "src": "198.51.100.11",
        "dst": "203.0.113.7",
        "protocol": "udp",
        "port": {
          "src": 53,
          "dst": 40000
        },
        "length": 1400,
        "scale": 16,
        "verdict": "accept"
      },
      {
        "at": "2026-01-31T12:00:00.000Z",
        "src": "198.51.100.10",
        "dst": "203.0.113.7",
        "protocol": "udp",
        "port": {
          "src": 53,
          "dst": 40000
        },
        "length": 1400,
        "scale": 16,
        "verdict": "accept"
      }
    ],
    "top_sources": [
      {
        "source": "198.51.100.10",
        "packets": 16,
        "share": 0.3333333333333333
      },
      {
        "source": "198.51.100.11",
        "packets": 16,
        "share": 0.3333333333333333
      }
    ]
  },
  "readAnyAttack": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa005",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "scrubbing-centre",
      "external_id": "incident-4711",
      "vectors": [
        "udp-amplification-dns"
      ],
      "started_at": "2025-04-13T03:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 1250000,
      "peak_bps": 9800000000,
      "mitigation": "observe",
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "top_sources": [
        {
          "source": "198.51.100.9",
          "share": 0.4
        }
      ],
      "samples": [
        {
          "at": "2025-04-13T03:00:00.000Z",
          "pps": 1250000,
          "bps": 9800000000
        }
      ],
      "flowrules": [],
      "timeline": [],
      "packet_samples": [],
      "measures": {
        "flowrules": [],
        "firewall_rules": [],
        "notes": []
      }
    }
  ],
  "readAttack": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa013",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "dst": "203.0.113.7",
      "state": "ongoing",
      "source": "levee",
      "external_id": "01890a5d-ac96-774b-bcce-b302099aa017",
      "vectors": [
        "udp-amplification"
      ],
      "started_at": "2026-01-31T12:00:00.000Z",
      "last_reported_at": "2026-01-31T12:00:00.000Z",
      "peak_pps": 48000,
      "peak_bps": 537600000,
      "mitigation": "edge",
      "timings": {
        "detect_ms": 250,
        "decide_ms": 12
      },
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "threshold": {
        "policy": "default",
        "metric": "udp-amplification pps",
        "value": 10000,
        "observed": 48000
      },
      "actions": [
        {
          "at": "2026-01-31T12:00:00.000Z",
          "action": "edge",
          "descr": "udp-amplification:port 53"
        },
        {
          "at": "2026-01-31T12:00:00.000Z",
          "action": "flowspec-proposed",
          "descr": "udp-amplification:ports: The policy stops at the edge: nothing is announced."
        }
      ],
      "samples": [
        {
          "at": "2026-01-31T12:00:00.000Z",
          "pps": 48000,
          "bps": 537600000
        }
      ],
      "flowrules": [
        "01890a5d-ac96-774b-bcce-b302099aa012",
        "01890a5d-ac96-774b-bcce-b302099aa016"
      ],
      "packets": 12000,
      "bytes": 16800000,
      "sampled": 750,
      "average": {
        "pps": 12000,
        "bps": 134400000
      },
      "top_sources": [
        {
          "source": "198.51.100.9",
          "share": 0.5
        },
        {
          "source": "198.51.100.10",
          "share": 0.25
        }
      ],
      "top_ports": {
        "src": [
          {
            "port": 53,
            "share": 1
          }
        ],
        "dst": [
          {
            "port": 40000,
            "share": 0.25
          }
        ]
      },
      "entries": [
        {
          "exporter": "edge1",
          "interface": 7,
          "share": 0.8
        },
        {
          "exporter": "192.0.2.2",
          "share": 0.2
        }
      ],
      "profile": [
        {
          "vector": "udp-amplification",
          "pps": 48000,
          "bps": 537600000,
          "peak_pps": 48000,
          "peak_bps": 537600000,
          "samples": 750,
          "protocols": [
            {
              "protocol": "udp",
              "share": 1
            }
          ],
          "source_ports": [
            {
              "port": 53,
              "share": 1
            }
          ],
          "destination_ports": [
            {
              "port": 40000,
              "share": 0.25
            }
          ],
          "icmp": [],
          "tcpflags": [],
          "length": {
            "min": 1200,
            "p5": 1300,
            "max": 1500
          },
          "later_fragments": 0.1,
          "sources": [
            {
              "source": "198.51.100.9",
              "share": 0.5
            },
            {
              "source": "198.51.100.10",
              "share": 0.25
            }
          ],
          "distinct_sources": 40,
          "destinations": []
        }
      ],
      "timeline": [
        {
          "at": "2026-01-31T12:00:00.000Z",
          "seconds": 1,
          "pps": 48000,
          "bps": 537600000,
          "vectors": {
            "udp-amplification": {
              "pps": 48000,
              "bps": 537600000
            }
          }
        },
        {
          "at": "2026-01-31T12:00:00.000Z",
          "seconds": 1,
          "pps": 48000,
          "bps": 537600000,
          "vectors": {
            "udp-amplification": {
              "pps": 48000,
              "bps": 537600000
            }
          }
        }
      ],
      "packet_samples": [
        {
          "at": "2026-01-31T12:00:00.000Z",
          "src": "198.51.100.9",
          "dst": "203.0.113.7",
          "protocol": "udp",
          "port": {
            "src": 53,
            "dst": 40000
          },
          "length": 1400,
          "scale": 16,
          "exporter": "edge1",
          "interface": 7
        },
        {
          "at": "2026-01-31T12:00:00.000Z",
          "src": "198.51.100.10",
          "dst": "203.0.113.7",
          "protocol": "udp",
          "port": {
            "src": 53,
            "dst": 40000
          },
          "length": 1400,
          "scale": 16,
          "exporter": "edge1",
          "interface": 7
        }
      ],
      "measures": {
        "flowrules": [
          {
            "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
            "purpose": "udp-amplification:ports",
            "state": "proposed",
            "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere."
          },
          {
            "uuid": "01890a5d-ac96-774b-bcce-b302099aa016",
            "purpose": "udp-amplification:fragments",
            "state": "proposed",
            "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere."
          }
        ],
        "firewall_rules": [
          {
            "uuid": "01890a5d-ac96-774b-bcce-b302099aa014",
            "purpose": "udp-amplification:port 53",
            "state": "active"
          }
        ],
        "notes": []
      }
    }
  ],
  "readDetectionPolicy": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa007",
    "scope": "203.0.113.0/28",
    "thresholds": {
      "tcp-syn": {
        "pps": 20000
      },
      "total": {
        "pps": 500000,
        "bps": 5000000000
      }
    },
    "mitigation": "flowspec",
    "hold_s": 60,
    "baseline_factor": 3,
    "mitigation_hold_s": 300,
    "override_accept": false,
    "allow_rtbh": false,
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "readDetector": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa009",
    "name": "detect1",
    "created_at": "2026-01-31T12:00:00.000Z"
  },
  "readEffectiveDetectionPolicy": {
    "dst": "203.0.113.7",
    "thresholds": {
      "udp-amplification": {
        "policy": "default",
        "pps": 10000,
        "bps": 100000000
      },
      "tcp-syn": {
        "policy": "203.0.113.0/28",
        "pps": 20000
      },
      "tcp-syn-ack": {
        "policy": "default",
        "pps": 10000
      },
      "tcp-ack": {
        "policy": "default",
        "pps": 100000,
        "bps": 1000000000
      },
      "tcp-rst": {
        "policy": "default",
        "pps": 10000
      },
      "tcp-other": {
        "policy": "default",
        "pps": 5000
      },
      "icmp": {
        "policy": "default",
        "pps": 5000,
        "bps": 50000000
      },
      "gre": {
        "policy": "default",
        "pps": 50000,
        "bps": 500000000
      },
      "esp": {
        "policy": "default",
        "pps": 50000,
        "bps": 500000000
      },
      "ip-fragment": {
        "policy": "default",
        "pps": 10000,
        "bps": 100000000
      },
      "udp-other": {
        "policy": "default",
        "pps": 50000,
        "bps": 500000000
      },
      "ip-other": {
        "policy": "default",
        "pps": 5000,
        "bps": 50000000
      },
      "total": {
        "policy": "203.0.113.0/28",
        "pps": 500000,
        "bps": 5000000000
      }
    },
    "aggregate_thresholds": {
      "udp-amplification": {
        "policy": "default",
        "pps": 40000,
        "bps": 400000000
      },
      "tcp-syn": {
        "policy": "203.0.113.0/28",
        "pps": 80000
      },
      "tcp-syn-ack": {
        "policy": "default",
        "pps": 40000
      },
      "tcp-ack": {
        "policy": "default",
        "pps": 400000,
        "bps": 4000000000
      },
      "tcp-rst": {
        "policy": "default",
        "pps": 40000
      },
      "tcp-other": {
        "policy": "default",
        "pps": 20000
      },
      "icmp": {
        "policy": "default",
        "pps": 20000,
        "bps": 200000000
      },
      "gre": {
        "policy": "default",
        "pps": 200000,
        "bps": 2000000000
      },
      "esp": {
        "policy": "default",
        "pps": 200000,
        "bps": 2000000000
      },
      "ip-fragment": {
        "policy": "default",
        "pps": 40000,
        "bps": 400000000
      },
      "udp-other": {
        "policy": "default",
        "pps": 200000,
        "bps": 2000000000
      },
      "ip-other": {
        "policy": "default",
        "pps": 20000,
        "bps": 200000000
      },
      "total": {
        "policy": "203.0.113.0/28",
        "pps": 2000000,
        "bps": 20000000000
      }
    },
    "mitigation": "flowspec",
    "hold_s": 60,
    "baseline_factor": 3,
    "mitigation_hold_s": 300,
    "override_accept": false,
    "allow_rtbh": false
  },
  "readEvents": "retry: 2000\n\nid: 5f0c3a9e-0\n\nid: 5f0c3a9e-1\nevent: attack.started\ndata: {\"id\":\"5f0c3a9e-1\",\"type\":\"attack.started\",\"timestamp\":\"2026-01-31T12:00:00.000Z\",\"data\":{\"uuid\":\"01890a5d-ac96-774b-bcce-b302099aa005\",\"owner_uuid\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"dst\":\"203.0.113.7\",\"state\":\"ongoing\",\"source\":\"scrubbing-centre\",\"external_id\":\"incident-4711\",\"vectors\":[\"udp-amplification-dns\"],\"started_at\":\"2025-04-13T03:00:00.000Z\",\"last_reported_at\":\"2026-01-31T12:00:00.000Z\",\"peak_pps\":1250000,\"peak_bps\":9800000000,\"mitigation\":\"observe\",\"created_at\":\"2026-01-31T12:00:00.000Z\",\"updated_at\":\"2026-01-31T12:00:00.000Z\"}}\n\n",
  "readExporter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa008",
    "name": "edge1",
    "source": "192.0.2.1",
    "sampling": 1024,
    "interfaces": [
      1,
      2
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "readFilter": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00b",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "dst": "203.0.113.7",
      "filter": 10,
      "priority": 1000,
      "port": {
        "dst": {
          "start": 27015,
          "end": 27020
        }
      },
      "ratelimit": 500,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    }
  ],
  "readFirewallRule": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00a",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "disabled",
      "dst": "203.0.113.7",
      "protocol": "udp",
      "action": "drop",
      "priority": 10,
      "descr": "no memcached replies",
      "port": {
        "src": {
          "start": 11211,
          "end": 11211
        }
      },
      "disabled": true,
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "hits": {
        "packets": 0,
        "bytes": 0
      }
    }
  ],
  "readFlowrule": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "proposed",
      "state_reason": "No BGP speaker is configured: the rule is shown and announced nowhere.",
      "dst": "203.0.113.7",
      "components": {
        "protocol": "udp",
        "source-port": "53",
        "packet-length": "1080-65535"
      },
      "action": "discard",
      "applied": [],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "origin": "operator",
      "attack_uuid": "01890a5d-ac96-774b-bcce-b302099aa013"
    }
  ],
  "readQuota": {
    "account_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "quotas": {
      "firewall_rules": {
        "used": 2,
        "maximum": 10000
      },
      "filters": {
        "used": 1,
        "maximum": 200
      },
      "tunnels": {
        "used": 1,
        "maximum": 20
      },
      "users": {
        "used": 1,
        "maximum": 50
      }
    }
  },
  "readRdnsZone": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa003",
    "zone": "113.0.203.in-addr.arpa",
    "driver": "embedded",
    "covers": [
      "203.0.113.0/24"
    ],
    "nameservers": [
      "ns1.example.net",
      "ns2.example.net"
    ],
    "ttl": 3600,
    "serial": 1769860800,
    "status": {
      "reachable": true,
      "checked_at": "2026-01-31T12:00:00.000Z",
      "records_applied": 1,
      "records_pending": 0,
      "records_failed": 0,
      "secondaries": []
    },
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "readRouter": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa002",
    "name": "edge1",
    "location": "fra1",
    "tunnel_addresses": [
      "192.0.2.1",
      "2001:db8:ffff::1"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "enrolled": true,
    "enrolled_at": "2026-01-31T12:00:00.000Z",
    "enforcement": "kernel",
    "last_seen_at": "2026-01-31T12:00:00.000Z"
  },
  "readSpeaker": {
    "name": null,
    "connected": false
  },
  "readTunnel": [
    {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa00c",
      "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "state": "active",
      "ips": [
        "203.0.113.0/28"
      ],
      "endpoint": "198.51.100.10",
      "type": "GRE",
      "applied": [
        {
          "location": "fra1",
          "router": "edge1",
          "state": "active",
          "at": "2026-01-31T12:00:00.000Z",
          "latency_ms": 12
        }
      ],
      "created_at": "2026-01-31T12:00:00.000Z",
      "updated_at": "2026-01-31T12:00:00.000Z",
      "tunnel_information": [
        {
          "location": "fra1",
          "router": "edge1",
          "local_endpoint": "192.0.2.1",
          "remote_endpoint": "198.51.100.10",
          "inner_ipv4": {
            "router": "10.48.0.2",
            "customer": "10.48.0.3",
            "prefix_length": 31
          },
          "inner_ipv6": {
            "router": "fd6c:6576:6565::2",
            "customer": "fd6c:6576:6565::3",
            "prefix_length": 127
          },
          "key": 1,
          "mtu": 1472,
          "mss": 1432,
          "mss_ipv6": 1412,
          "state": "active",
          "probe": {
            "rtt_ms": {
              "min": 11.6,
              "avg": 11.6,
              "max": 11.6
            },
            "loss_percent": 0,
            "last_answer_at": "2026-01-31T12:00:00.000Z",
            "at": "2026-01-31T12:00:00.000Z"
          }
        }
      ]
    }
  ],
  "readTunnelConfig": "# GRE tunnel 01890a5d-ac96-774b-bcce-b302099aa00c to edge1 at fra1\n# For a root shell; until the next start. Addresses of ips that this machine itself has: ip address add ADDRESS dev lo\n# Where they belong to machines behind it: sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\n# 198.51.100.10 has to be an address of this machine; behind address translation put the translated-to one here.\n# rp_filter=2: a strict filter by reverse path would drop what arrives by another end than replies leave by.\nip link add name lv1 mtu 1472 type gre local 198.51.100.10 remote 192.0.2.1 ttl 64 key 1\nip link set dev lv1 alias 01890a5d-ac96-774b-bcce-b302099aa00c\nsysctl -q -w net.ipv4.conf.lv1.rp_filter=2\nip address add 10.48.0.3/31 dev lv1\nip address add fd6c:6576:6565::3/127 dev lv1 nodad\nip link set dev lv1 up\n# Replies go back through the tunnel, all else as before.\nip route replace default via 10.48.0.2 dev lv1 metric 100 table 10001\nip rule add from 203.0.113.0/28 lookup main suppress_prefixlength 0 priority 1000\nip rule add from 203.0.113.0/28 lookup 10001 priority 1001\n# TCP: segments that fit the tunnel, in both directions.\nnft -f - <<'EOF'\ntable inet levee_1\ndelete table inet levee_1\ntable inet levee_1 {\n  chain in {\n    type filter hook prerouting priority mangle; policy accept;\n    iifname \"lv1\" meta nfproto ipv4 tcp flags syn tcp option maxseg size set 1432\n    iifname \"lv1\" meta nfproto ipv6 tcp flags syn tcp option maxseg size set 1412\n  }\n  chain out {\n    type filter hook postrouting priority mangle; policy accept;\n    oifname \"lv1\" meta nfproto ipv4 tcp flags syn tcp option maxseg size set 1432\n    oifname \"lv1\" meta nfproto ipv6 tcp flags syn tcp option maxseg size set 1412\n  }\n}\nEOF\n",
  "readUser": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "username": "alice",
    "email": "alice@example.net",
    "name": "Alice",
    "ips": [
      "203.0.113.0/28",
      "203.0.113.16/28"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "readWebhook": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "failing",
    "state_reason": "The last attempt: hooks.example.net refuses connections to port 443.",
    "url": "https://hooks.example.net/levee",
    "events": [
      "*"
    ],
    "disabled": false,
    "failing_since": "2026-01-31T12:00:00.000Z",
    "former_secret_valid_until": "2026-02-01T12:00:00.000Z",
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "recordAttack": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa005",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "dst": "203.0.113.7",
    "state": "ongoing",
    "source": "scrubbing-centre",
    "external_id": "incident-4711",
    "vectors": [
      "udp-amplification-dns"
    ],
    "started_at": "2025-04-13T03:00:00.000Z",
    "last_reported_at": "2026-01-31T12:00:00.000Z",
    "peak_pps": 1250000,
    "peak_bps": 9800000000,
    "mitigation": "observe",
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "recordFastnetmonAttack": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa006",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "dst": "203.0.113.7",
    "state": "ongoing",
    "source": "fastnetmon",
    "external_id": "7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11",
    "vectors": [
      "udp"
    ],
    "started_at": "2026-01-31T12:00:00.000Z",
    "last_reported_at": "2026-01-31T12:00:00.000Z",
    "peak_pps": 812000,
    "peak_bps": 5120000000,
    "mitigation": "observe",
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "renewRouterToken": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa002",
    "name": "edge1",
    "location": "fra1",
    "tunnel_addresses": [
      "192.0.2.1",
      "2001:db8:ffff::1"
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "enrollment_token": "ExampleExampleExampleExampleExam",
    "enrollment_expires_at": "2026-01-31T13:00:00.000Z",
    "message": "The router's present key works until the token is used, and no longer."
  },
  "replaceFirewallRules": {
    "dst": "203.0.113.7",
    "rules": [
      {
        "uuid": "01890a5d-ac96-774b-bcce-b302099aa039",
        "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
        "state": "active",
        "dst": "203.0.113.7",
        "protocol": "udp",
        "action": "drop",
        "priority": 1000,
        "disabled": false,
        "applied": [
          {
            "location": "fra1",
            "router": "edge1",
            "state": "active",
            "at": "2026-01-31T12:00:00.000Z",
            "latency_ms": 12
          }
        ],
        "created_at": "2026-01-31T12:00:00.000Z",
        "updated_at": "2026-01-31T12:00:00.000Z",
        "hits": {
          "packets": 0,
          "bytes": 0
        }
      }
    ],
    "created": 0,
    "kept": 1,
    "removed": 0
  },
  "resetUserPassword": {
    "message": "The password has been reset."
  },
  "retryWebhookDelivery": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa011",
    "webhook_uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "event": "webhook.test",
    "state": "pending",
    "created_at": "2026-01-31T12:00:00.000Z",
    "next_attempt_at": "2026-01-31T12:00:00.000Z",
    "attempts": [
      {
        "at": "2026-01-31T12:00:00.000Z",
        "error": "hooks.example.net refuses connections to port 443",
        "duration_ms": 12
      }
    ]
  },
  "revokeApiKey": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00e",
    "account_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "name": "deploy",
    "read_only": true,
    "sources": [
      "198.51.100.0/24"
    ],
    "revoked_at": "2026-01-31T12:00:00.000Z",
    "created_at": "2026-01-31T12:00:00.000Z",
    "message": "The API key is revoked."
  },
  "rotateWebhookSecret": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "url": "https://hooks.example.net/levee",
    "events": [
      "*"
    ],
    "disabled": false,
    "former_secret_valid_until": "2026-02-01T12:00:00.000Z",
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z",
    "secret": "whsec_ExampleExampleExampleExampleExampleExampleE="
  },
  "setQuota": {
    "account_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
    "quotas": {
      "firewall_rules": {
        "used": 2,
        "maximum": 10000
      },
      "filters": {
        "used": 1,
        "maximum": 200
      },
      "tunnels": {
        "used": 1,
        "maximum": 20
      },
      "users": {
        "used": 1,
        "maximum": 50
      }
    }
  },
  "testWebhook": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa011",
    "webhook_uuid": "01890a5d-ac96-774b-bcce-b302099aa00f",
    "event": "webhook.test",
    "state": "pending",
    "created_at": "2026-01-31T12:00:00.000Z",
    "next_attempt_at": "2026-01-31T12:00:00.000Z",
    "attempts": []
  },
  "updateRdns": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa00d",
    "owner_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "state": "active",
    "ips": "203.0.113.7",
    "record": "mail.example.net",
    "applied": [
      {
        "zone": "113.0.203.in-addr.arpa",
        "driver": "embedded",
        "state": "active",
        "at": "2026-01-31T12:00:00.000Z",
        "latency_ms": 12
      }
    ],
    "created_at": "2026-01-31T12:00:00.000Z",
    "updated_at": "2026-01-31T12:00:00.000Z"
  },
  "whoAmI": {
    "account": {
      "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "role": "user",
      "name": "Alice",
      "provider_uuid": "01890a5d-ac96-774b-bcce-b302099aa000",
      "username": "alice",
      "email": "alice@example.net",
      "subnets": [
        "203.0.113.0/28",
        "203.0.113.16/28"
      ]
    },
    "api_key": {
      "uuid": "01890a5d-ac96-774b-bcce-b302099aa018",
      "account_uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
      "name": "test",
      "read_only": false,
      "created_at": "2026-01-31T12:00:00.000Z"
    }
  },
  "withdrawFlowrule": {
    "uuid": "01890a5d-ac96-774b-bcce-b302099aa012",
    "state": "marked_for_deletion",
    "message": "The flowrule is marked for deletion."
  }
};
export const recordedErrors: Readonly<Record<string, unknown>> = {
  "body_too_large": {
    "error": "body_too_large",
    "message": "The body exceeds 1 MiB.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "conflict": {
    "error": "conflict",
    "message": "ips.0: 203.0.113.0/29 overlaps a subnet that is in use already",
    "field": "/ips/0",
    "details": [
      {
        "field": "/ips/0",
        "code": "ip_in_use",
        "message": "ips.0: 203.0.113.0/29 overlaps a subnet that is in use already"
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "idempotency_key_reused": {
    "error": "idempotency_key_reused",
    "message": "Idempotency-Key: was used before with another request; a new request needs a new key",
    "field": "Idempotency-Key",
    "details": [
      {
        "field": "Idempotency-Key",
        "code": "idempotency_key_reused",
        "message": "Idempotency-Key: was used before with another request; a new request needs a new key"
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "invalid_api_key": {
    "error": "invalid_api_key",
    "message": "The API key in x-api-key is not valid: it is unknown, misspelt, revoked or expired.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "invalid_json": {
    "error": "invalid_json",
    "message": "The body is not a valid JSON text.",
    "details": [
      {
        "field": "",
        "code": "invalid_json",
        "message": "The body is not a valid JSON text."
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "ip_not_allowed": {
    "error": "ip_not_allowed",
    "message": "dst: 198.51.100.7 is not within the caller's addresses; it must lie inside one of the user's subnets",
    "field": "/dst",
    "details": [
      {
        "field": "/dst",
        "code": "ip_not_allowed",
        "message": "dst: 198.51.100.7 is not within the caller's addresses; it must lie inside one of the user's subnets"
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "missing_api_key": {
    "error": "missing_api_key",
    "message": "The x-api-key header is missing: every operation needs an API key in it.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "not_found": {
    "error": "not_found",
    "message": "Nothing is here for this key: the path or the object does not exist.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "operation_not_allowed": {
    "error": "operation_not_allowed",
    "message": "This API key may call listAttacks and nothing else; this operation is whoAmI.",
    "details": [
      {
        "field": "",
        "code": "operation_not_allowed",
        "message": "This API key may call listAttacks and nothing else; this operation is whoAmI."
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "operator_key_required": {
    "error": "operator_key_required",
    "message": "This operation needs a key of an operator; the key is of a user.",
    "details": [
      {
        "field": "",
        "code": "operator_key_required",
        "message": "This operation needs a key of an operator; the key is of a user."
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "provider_key_required": {
    "error": "provider_key_required",
    "message": "This operation needs a key of a provider; the key is of a user.",
    "details": [
      {
        "field": "",
        "code": "provider_key_required",
        "message": "This operation needs a key of a provider; the key is of a user."
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "read_only_key": {
    "error": "read_only_key",
    "message": "This API key may only read; the operation changes something.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "source_not_allowed": {
    "error": "source_not_allowed",
    "message": "This API key may not be used from the address that the request came from.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "unsupported_media_type": {
    "error": "unsupported_media_type",
    "message": "The body is not application/json.",
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  },
  "validation_failed": {
    "error": "validation_failed",
    "message": "dst: 203.0.113.7/24 has host bits set; did you mean 203.0.113.0/24 or 203.0.113.7/32? (and 1 more problem: see details)",
    "field": "/dst",
    "details": [
      {
        "field": "/dst",
        "code": "host_bits_set",
        "message": "dst: 203.0.113.7/24 has host bits set; did you mean 203.0.113.0/24 or 203.0.113.7/32?"
      },
      {
        "field": "/action",
        "code": "not_allowed",
        "message": "action: must be one of accept, continue, drop, reject, received the string \"deny\""
      }
    ],
    "request_id": "3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11"
  }
};
