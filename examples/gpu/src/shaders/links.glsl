// Of a link: the row is the first one of its place.
const uint HEAD = 0x80000000u;
