/**
 * Is a text an IP address? Pure, so that the core can ask; the same answers as inet_pton for the forms people write.
 */

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** 4, 6, or 0 when the text is no IP address. Zone indexes (`fe80::1%eth0`) count as IPv6. */
export function ipFamily(text: string): 0 | 4 | 6 {
  if (IPV4.test(text)) return 4;
  return isIpv6(text) ? 6 : 0;
}

export function isIpAddress(text: string): boolean {
  return ipFamily(text) !== 0;
}

function isIpv6(text: string): boolean {
  const bare = text.replace(/%[\w.-]+$/, '');
  if (!bare.includes(':') || !/^[\da-fA-F:.]+$/.test(bare)) return false;
  const halves = bare.split('::');
  if (halves.length > 2) return false;
  let groups = 0;
  const all = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  // The dotted part ends the whole text, not what stands before `::`.
  if (halves.length === 2 && halves[0]?.includes('.') === true) return false;
  for (const [index, group] of all.entries()) {
    if (group.includes('.')) {
      if (index !== all.length - 1 || !IPV4.test(group)) return false;
      groups += 2;
    } else if (/^[\da-fA-F]{1,4}$/.test(group)) {
      groups += 1;
    } else {
      return false;
    }
  }
  return halves.length === 2 ? groups < 8 : groups === 8;
}
