# Many ---------------------------------------------------------------------------------------------------------


@case
def python_many_small_tensors(place):
    kept = [place.put(np.float32(number)) for number in range(2000)]
    same("the values", [float(tensor) for tensor in kept], [float(number) for number in range(2000)])


@case
def python_memory_comes_back(place):
    # 64 times 4 MiB, of which few are kept at a time.
    kept = []
    for number in range(64):
        kept.append((number, place.put(np.full(1 << 20, number, np.float32))))
        kept = kept[-3:]
    for number, tensor in kept:
        same("the last of number %d" % number, float(tensor.numpy()[-1]), float(number))


def in_threads(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for _ in pool.map(work, range(count)):
            pass


@case
def python_threads_copy(place):
    def work(thread):
        for step in range(20):
            there_and_back(place, numbers((1 + 997 * step,), seed=100 * thread + step))

    in_threads(8, work)


@case
def python_threads_compute(place):
    op = place.has("AddV2", "Add", "Mul", "Sub")

    def work(thread):
        array = numbers((1000,), seed=thread)
        tensor = place.put(array)
        with place.on():
            for _ in range(20):
                result = getattr(tf.raw_ops, op)(x=tensor, y=tensor)
        near("%s in thread %d" % (op, thread), result.numpy(), on_cpu(op, array, array))

    in_threads(8, work)
