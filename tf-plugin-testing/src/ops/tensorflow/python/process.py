# The process --------------------------------------------------------------------------------------------------


@case
def python_loaded_twice(place):
    def check(sample):
        wanted = sample.eager()
        tf.load_op_library(place.library)
        load_library.load_pluggable_device_library(place.library)
        same_outputs(sample, "the sample call after the library was loaded again", sample.eager(), wanted)

    each(place.firsts, check)


@case
def python_threads(place):
    def check(sample):
        versions = turned(sample, 16)
        wanted = [sample.eager(inputs) for inputs in versions]
        function = sample.graph(unknown_rank)

        def work(thread):
            tensors = sample.tensors(versions[thread])
            for _ in range(10):
                same_outputs(sample, "eager calls on 16 threads", arrays_of(sample.apply(*tensors)), wanted[thread])
                same_outputs(sample, "a node on 16 threads", arrays_of(function(*tensors)), wanted[thread])

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for done in [pool.submit(work, thread) for thread in range(16)]:
                done.result()

    each(place.firsts, check)


@case
def python_forks(place):
    # Seconds that a child may take.
    patience = 30

    def check(sample):
        wanted = sample.eager()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            status = 3
            try:
                signal.alarm(patience)
                # Eager calls, on this thread: those of TensorFlow stayed with the parent.
                status = 0
                for _ in range(3):
                    if not all(is_same(got, want) for got, want in zip(sample.eager(), wanted)):
                        status = 0 if sample.stateful else 1
            except Exception:
                traceback.print_exc()
                status = 2
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        if os.WIFSIGNALED(ended):
            name = signal.Signals(os.WTERMSIG(ended)).name
            raise Wrong("a forked child", "the outputs of its parent", "no end in %d s" % patience if name == "SIGALRM" else name)
        reason = {1: "other outputs", 2: "an exception; see the messages"}.get(os.WEXITSTATUS(ended), "exit status %d" % os.WEXITSTATUS(ended))
        if ended:
            raise Wrong("a forked child", "the outputs of its parent", reason)
        same_outputs(sample, "the parent afterwards", sample.eager(), wanted)

    each(place.firsts, check)


class Allocated(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def allocated():
    """The bytes that `malloc` has given away."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        raise Skip("the C library has no `mallinfo2`") from None
    mallinfo.restype = Allocated
    found = mallinfo()
    return found.uordblks + found.hblkhd


@case
def python_memory_of_many_calls(place):
    calls = 10_000

    def check(sample):
        tensors = sample.tensors()

        def grows(count):
            gc.collect()
            before = allocated()
            for _ in range(count):
                sample.apply(*tensors)
            gc.collect()
            return allocated() - before

        # Caches fill first.
        grows(calls // 10)
        parts = [grows(calls // 4) for _ in range(4)]
        # Memory for each call grows in each part.
        if min(parts) > 8 * (calls // 4):
            raise Wrong("memory after %d calls" % calls, "that of before", "%d bytes more" % sum(parts),
                        "%.0f bytes for each call" % (min(parts) / (calls // 4)))

    each(place.firsts, check)
