/**
 * Which addresses a webhook may reach: only those of the public internet. Everything that the registries of special-purpose
 * addresses reserve is refused, and for IPv6 everything that is not global unicast.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

const RESERVED_IPV4: readonly [string, number][] = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, cloud metadata
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.31.196.0', 24], // AS112
  ['192.52.193.0', 24], // AMT
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['192.175.48.0', 24], // AS112
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
];
/** Inside global unicast (2000::/3), which is all that is allowed. */
const RESERVED_IPV6: readonly [string, number][] = [
  ['2001::', 23], // protocol assignments, Teredo, ORCHID
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4: carries an IPv4 address
  ['2620:4f:8000::', 48], // AS112
  ['3fff::', 20], // documentation
];

export type AddressCheck = (address: string) => boolean;

/** True for an address that the public internet routes to. */
export function createAddressCheck(): AddressCheck {
  const reserved = new BlockList();
  for (const [network, bits] of RESERVED_IPV4) reserved.addSubnet(network, bits, 'ipv4');
  for (const [network, bits] of RESERVED_IPV6) reserved.addSubnet(network, bits, 'ipv6');
  const globalUnicast = new BlockList();
  globalUnicast.addSubnet('2000::', 3, 'ipv6');
  return (address) => {
    if (isIPv4(address)) return !reserved.check(address, 'ipv4');
    if (!isIPv6(address)) return false;
    // An IPv4-mapped address lies outside of global unicast, like NAT64, unique local, link-local and loopback.
    return globalUnicast.check(address, 'ipv6') && !reserved.check(address, 'ipv6');
  };
}
