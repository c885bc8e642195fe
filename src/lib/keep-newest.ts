/**
 * Sets an entry of a map, as its newest one, and evicts the oldest beyond `most`: whoever chooses the keys cannot make
 * the map grow. What is read often is evicted as well, unless it is also set anew.
 */
export function keepNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value as Key);
}
