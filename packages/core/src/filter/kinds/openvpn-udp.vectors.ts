/** Packets that filter kind 21, OpenVPN over UDP, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

const session = '6f1e0b92a4c35d78';
const bareReset = `38 ${session} 00 00000000`;
const acknowledgement = `28 ${session} 01 00000000 91b0d27c44fe03a5`;
const data = `48 000000 00000001 ${'c3'.repeat(60)}`;

export const openvpnUdpVectors: readonly FilterVector[] = [
  {
    says: "a client's bare reset, and what it sends then",
    steps: [
      datagram(bareReset, 'pass'),
      datagram(acknowledgement, 'pass'),
      datagram(`20 ${session} 00 00000001 160301`, 'pass'),
      datagram(data, 'pass'),
      datagram(`30 ${'c3'.repeat(60)}`, 'pass'),
      datagram(`19 ${session} 00 00000000`, 'pass'),
      datagram(`58 ${session} ${'77'.repeat(80)}`, 'pass'),
      datagram(bareReset, 'pass'),
      datagram(`38 ${session} 01 00000000 91b0d27c44fe03a5 00000001`, 'pass'),
    ],
  },
  {
    says: 'resets with tls-auth and tls-crypt',
    steps: [
      datagram(`38 ${session} ${'1d'.repeat(20)} 00000001 65f1c2d3 00 00000000`, 'pass'),
      { ...datagram(`38 ${session} 00000001 65f1c2d3 ${'2e'.repeat(32)} ${'3f'.repeat(5)}`, 'pass'), client: 2 },
    ],
  },
  {
    says: 'a reset with tls-crypt-v2 and its wrapped key',
    steps: [datagram(`50 ${session} 00000001 65f1c2d3 ${'2e'.repeat(32)} ${'3f'.repeat(300)}`, 'pass')],
  },
  { says: 'data of a source that has not begun', steps: [datagram(data, 'discard')] },
  { says: 'an acknowledgement of a source that has not begun', steps: [datagram(acknowledgement, 'discard')] },
  {
    says: 'data of another source than the one that has begun',
    steps: [datagram(bareReset, 'pass'), { ...datagram(data, 'discard'), client: 2 }],
  },
  {
    says: "a server's operations, and those of no version, from a known source",
    steps: [
      datagram(bareReset, 'pass'),
      datagram(`40 ${session} 01 00000000 91b0d27c44fe03a5 00000000`, 'discard'),
      datagram(`08 ${session} 00 00000000`, 'discard'),
      datagram(`60 ${session} 00 00000000`, 'discard'),
    ],
  },
  { says: 'a reset under another key id', steps: [datagram(`39 ${session} 00 00000000`, 'discard')] },
  { says: 'a bare reset with a packet id', steps: [datagram(`38 ${session} 00 00000001`, 'discard')] },
  { says: 'a bare reset with an octet more', steps: [datagram(`${bareReset} 00`, 'discard')] },
  { says: 'a bare reset cut off', steps: [datagram(`38 ${session} 00 000000`, 'discard')] },
  { says: 'a reset of the third version, too short', steps: [datagram(`50 ${session} ${'2e'.repeat(44)}`, 'discard')] },
  {
    says: 'a running session is learnt while the filter settles',
    settling: true,
    steps: [datagram(data, 'pass'), datagram(acknowledgement, 'pass'), datagram('40', 'discard')],
  },
  {
    says: 'a session of OpenVPN 2.6.14',
    steps: [
      datagram('38f55826b50c3a78290000000000', 'pass'),
      datagram('28f55826b50c3a782902000000010000000021a0634f5a98ff36', 'pass'),
      datagram(
        `
        20f55826b50c3a78290300000002000000010000000021a0634f5a98ff3600000003e6eb0bdefef2059bc76ab5af1c32c6294497
        90cc04fec1767c9d8c4896fea553b28d4d6049ae2263120f88ae58b1cdcbe158c0745cb7a1d4784b212227dc712d03bf2cee5e0c
        2c96a6290f80945763b3f34d30480453de74155e5846d9092a7b4bdff046167733220377430323e12f3508e4003e51f148b539f1
        94fda39c11d7f00efbe286acc85cf3883a3e6cb63ce307508077551b0eb01ba4f8719534410cbfd395bdb3be01690818403af709
        1ad8f0785643ddac751bb7658f1173f487a54b3538c3eb51508d62f7f2cd1b0a72a446232c6ee5e5ecdfc47bfc43ed52e79ac7ea
        ae2ef3c6889448fcb5ddd135ff281ca10a56bde6962a46d5c75788`,
        'pass',
      ),
      datagram(
        `
        480000000000000306473df3ddffe7b931fac2166944a858c954f15e9805098c75158e18b8b9af1ef7171b99e5517626de25a001
        a4301de91d8cf9bb95be297c740fe7c1e3204e554515af094cfca0a91f94b9bc206d6098065c37a4de94e4cb292737665d587cdf
        ba1d0495`,
        'pass',
      ),
    ],
  },
  {
    says: 'a reset of OpenVPN 2.6.14 with tls-auth',
    steps: [datagram('38332f5e21f4c3ce3dbd3b5e13d71effec6b35c2f9693b65a1b2731630000000016b00797b0000000000', 'pass')],
  },
  {
    says: 'a reset of OpenVPN 2.6.14 with tls-crypt',
    steps: [
      datagram(
        `
        3816fcd8bc971ffa10000000016b00797c211a47253546c6cd2f7a1c410068b27bcd068995c145cb34341498cd279d1222fcb2a2
        1edf`,
        'pass',
      ),
    ],
  },
  {
    says: 'the beginning of a session of OpenVPN 2.6.14 with tls-crypt-v2',
    steps: [
      datagram(
        `
        505c532ce7d5c0439a0f0000016b00797c7bfd46beed0e119b059e794b57f43729dc2837812bc7b15871fba4c0824430027fb349
        dae1bca9a46a81e7903c99b09bc9e4dcb5c6b1f81973c3ebc582bc9b94ddbcf8ac160363905c7cd0c0aedfc8ef7ba7f949a5155c
        336834819914ff15d4bfc2255e4a42d7d8a21d7bf8fa6491f4ff7043c865c8a63b9995dd60d9d1cd051319fed9e4dbee1cb6e9f4
        38cbe2feb3f5b626f1303a85d48b43410e7aa3befb0fdd08aa9a3fd08c398104330eaaaa8fd9cc4c012b6bd2ee138c9adaf27210
        0b3f2343fafdc11b2ff53ab1a659d828f51970fc1af91ebe3ce7f67cebfc63c4f20a6f5974a766ef84aa076cb14244a9428c0f28
        e38074d0a81465e565d45a10daf27cd91f4780063ddc454e8c31e60b434d898346dddb1832d5fe993cda8e4bb2961712951239c7
        0431ba6bad2e8b8a973e76c71a0633bbbf459ea7e37a49e5c57c8abd6cd6eb565a77ef844e41ba012b`,
        'pass',
      ),
      datagram(
        `
        585c532ce7d5c0439a0f0000026b00797cb7b026908e65f490f964c2e2d96dab2e585f76a460f4b2f055cee37d12b7885c86ea5e
        7955a32e1ffdc8efbb2e51da4eb4ca54426a6f3f50b36524af233d05e6a1d10a8ab0dde89a55e5e324365656e88fa48a2afc5399
        92e2af245c2960d66e7c165656c91555343ff7e6458710d9eac31bc93ba0cbabb4fee3e4df878287bbfdd884f900469413d6a758
        0730d2727aa3e8c029cfaefa9e67b14ea78397c3d837e2ce29cf27c202d4b1e09a5404f553c20e770a462162ae47fa2e9703ec94
        33a3858a4a85e640a050492616c0cebfb820f93ed7764c2b054d24957117c8f4170eefdb184d9af79dc2216980ed9edcbb6a771d
        44899df70d17442df59f9d71735459ffe406e41f0ec597434dd6fa6a7915153b15d2000015d832286677032977dea944550975af
        2e16041eb42c6d77c5027cb9cf8f0a4c4524122bfb821238add54e6c97593fbca9a46a81e7903c99b09bc9e4dcb5c6b1f81973c3
        ebc582bc9b94ddbcf8ac160363905c7cd0c0aedfc8ef7ba7f949a5155c336834819914ff15d4bfc2255e4a42d7d8a21d7bf8fa64
        91f4ff7043c865c8a63b9995dd60d9d1cd051319fed9e4dbee1cb6e9f438cbe2feb3f5b626f1303a85d48b43410e7aa3befb0fdd
        08aa9a3fd08c398104330eaaaa8fd9cc4c012b6bd2ee138c9adaf272100b3f2343fafdc11b2ff53ab1a659d828f51970fc1af91e
        be3ce7f67cebfc63c4f20a6f5974a766ef84aa076cb14244a9428c0f28e38074d0a81465e565d45a10daf27cd91f4780063ddc45
        4e8c31e60b434d898346dddb1832d5fe993cda8e4bb2961712951239c70431ba6bad2e8b8a973e76c71a0633bbbf459ea7e37a49
        e5c57c8abd6cd6eb565a77ef844e41ba012b`,
        'pass',
      ),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
