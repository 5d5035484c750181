// Indices from tensors, which may be any number.

// One unsigned comparison: of `index >= 0 && index < size` lavapipe of Mesa 22.3 makes true for negative 32-bit numbers.
bool is_within(int64_t index, uint size) { return uint64_t(index) < uint64_t(size); }
