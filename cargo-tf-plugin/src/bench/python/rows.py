

# Filesystems: each function gets a directory, and returns what is timed and what is to be done afterwards.


def write(path, content):
    with gfile.GFile(path, "wb") as file:
        file.write(content)


def fixture(root, size):
    """A file of this size; or the one that is there, on either side, if it is as large."""
    if JOB["file"] is not None:
        path = "%s/%s" % (root, JOB["file"].rsplit("/", 1)[1])
        length = gfile.stat(path).length
        if length < size:
            raise Absent("not measured: the file has %d bytes, and this takes %d" % (length, size))
        return path
    path = "%s/file-%d" % (root, size)
    if not gfile.exists(path):
        with gfile.GFile(path, "wb") as file:
            for _ in range(max(1, size // MIB)):
                file.write(b"7" * min(size, MIB))
    return path


def large(block):
    """The size of a file to read blocks from: of one that is there, that of a block at least."""
    return 16 * MIB if JOB["file"] is None else block


def used(path):
    """How much of a file is read: as much on both sides."""
    return min(gfile.stat(path).length, 16 * MIB)


def listed(root):
    directory = root + "/list"
    if not gfile.exists("%s/file-%d" % (directory, ENTRIES - 1)):
        try:
            gfile.makedirs(directory)
        except tf.errors.UnimplementedError:
            # A scheme without directories needs none.
            pass
        for number in range(ENTRIES):
            if stopping.is_set():
                raise Stopped()
            write("%s/file-%d" % (directory, number), b"7")
    return directory


def expect(found, wanted):
    if found != wanted:
        raise ValueError("%r, and %r was expected" % (found, wanted))


def filesystem_rows():
    @row("Names and metadata", "gfile.exists, of a file", reads=True)
    def _(root):
        path = fixture(root, 1)
        expect(gfile.exists(path), True)
        return (clock(lambda: gfile.exists(path)),)

    @row("Names and metadata", "gfile.exists, of nothing", reads=True)
    def _(root):
        path = root + "/tf-plugin-bench-nothing"
        expect(gfile.exists(path), False)
        return (clock(lambda: gfile.exists(path)),)

    @row("Names and metadata", "gfile.stat", reads=True)
    def _(root):
        path = fixture(root, 4 * KIB)
        expect(gfile.stat(path).is_directory, False)
        return (clock(lambda: gfile.stat(path)),)

    @row("Names and metadata", "gfile.isdir", reads=True)
    def _(root):
        return (clock(lambda: gfile.isdir(root)),)

    @row("Reading", "GFile: open, read 16 B, close", reads=True)
    def _(root):
        path = fixture(root, 16)

        def operation():
            with gfile.GFile(path, "rb") as file:
                file.read(16)

        return (clock(operation),)

    @row("Reading", "GFile.read of 1 MiB, in order", MIB, reads=True)
    def _(root):
        path = fixture(root, large(MIB))
        file, blocks, state = gfile.GFile(path, "rb"), used(path) // MIB, [0]

        def operation():
            if state[0] == blocks:
                file.seek(0)
                state[0] = 0
            state[0] += 1
            file.read(MIB)

        return clock(operation), file.close

    @row("Reading", "GFile: seek, read 4 KiB", 4 * KIB, reads=True)
    def _(root):
        path = fixture(root, large(4 * KIB))
        file, blocks, state = gfile.GFile(path, "rb"), used(path) // (4 * KIB), [1]

        def operation():
            state[0] = state[0] * 1103515245 + 12345 & 0x7FFFFFFF
            file.seek(state[0] % blocks * 4 * KIB)
            file.read(4 * KIB)

        return clock(operation), file.close

    @row("Reading", "tf.io.read_file of 1 MiB", MIB)
    def _(root):
        path = tf.constant(fixture(root, MIB))
        return (clock(lambda: tf.io.read_file(path)),)

    @row("Reading", "TFRecordDataset, 1,000 records of 1 KiB", 1000 * KIB)
    def _(root):
        path = root + "/records"
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(1000):
                writer.write(b"7" * KIB)

        def operation():
            expect(sum(1 for _ in tf.data.TFRecordDataset(path).batch(1000)), 1)

        return clock(operation), lambda: gfile.remove(path)

    @row("Writing", "GFile.write of 100 B", 100)
    def _(root):
        path, content, state = root + "/appended", b"7" * 100, [None, 0]

        def run(times):
            # Begun again, so that no disk and no memory is filled.
            if state[0] is None or state[1] > 64 * MIB:
                if state[0] is not None:
                    state[0].close()
                state[:] = gfile.GFile(path, "wb"), 0
            state[1] += 100 * times
            write = state[0].write
            start = time.perf_counter_ns()
            for _ in range(times):
                write(content)
            return time.perf_counter_ns() - start

        def close():
            if state[0] is not None:
                state[0].close()
            gfile.remove(path)

        return run, close

    @row("Writing", "tf.io.write_file of 4 KiB", 4 * KIB)
    def _(root):
        path, content = root + "/written", tf.constant(b"7" * 4 * KIB)
        return clock(lambda: tf.io.write_file(path, content)), lambda: gfile.remove(path)

    @row("Writing", "tf.io.write_file of 1 MiB", MIB)
    def _(root):
        path, content = root + "/written", tf.constant(b"7" * MIB)
        return clock(lambda: tf.io.write_file(path, content)), lambda: gfile.remove(path)

    @row("Writing", "TFRecordWriter, 1,000 records of 1 KiB", 1000 * KIB)
    def _(root):
        path, content = root + "/written", b"7" * KIB

        def operation():
            with tf.io.TFRecordWriter(path) as writer:
                for _ in range(1000):
                    writer.write(content)

        return clock(operation), lambda: gfile.remove(path)

    @row("Files and directories", "gfile.rename")
    def _(root):
        names = [root + "/renamed-a", root + "/renamed-b"]
        write(names[0], b"7" * 4 * KIB)

        def operation():
            gfile.rename(*names)
            names.reverse()

        return clock(operation), lambda: gfile.remove(names[0])

    @row("Files and directories", "gfile.copy of 1 MiB", MIB)
    def _(root):
        path, target = fixture(root, MIB), root + "/copied"
        return clock(lambda: gfile.copy(path, target, overwrite=True)), lambda: gfile.remove(target)

    @row("Files and directories", "gfile.makedirs, gfile.rmtree")
    def _(root):
        def operation():
            gfile.makedirs(root + "/a/b")
            gfile.rmtree(root + "/a")

        return (clock(operation),)

    @row("Files and directories", "gfile.listdir of 1,000")
    def _(root):
        directory = listed(root)
        return (clock(lambda: expect(len(gfile.listdir(directory)), ENTRIES)),)

    @row("Files and directories", "gfile.glob, 100 of 1,000")
    def _(root):
        pattern = listed(root) + "/*7"
        return (clock(lambda: expect(len(gfile.glob(pattern)), ENTRIES // 10)),)

    @row("What programs do", "Checkpoint.write of 4 MiB", 4 * MIB)
    def _(root):
        checkpoint = tf.train.Checkpoint(value=tf.Variable(tf.zeros(MIB)))
        return (clock(lambda: checkpoint.write(root + "/checkpoint")),)

    @row("What programs do", "Checkpoint.read of 4 MiB", 4 * MIB)
    def _(root):
        checkpoint = tf.train.Checkpoint(value=tf.Variable(tf.zeros(MIB)))
        checkpoint.write(root + "/checkpoint")
        return (clock(lambda: checkpoint.read(root + "/checkpoint")),)


def make_directory():
    for directory in JOB["directories"]:
        # Only what is made here may be removed: some plugins drop parts of a name.
        try:
            problem = "it already exists" if gfile.exists(directory) else None
        except Exception as error:
            problem = first_line(error)
        if problem is not None:
            tell({"Refused": [directory, problem]})
            continue
        tell({"Directory": directory})
        try:
            try:
                gfile.mkdir(directory)
            except tf.errors.UnimplementedError:
                # A scheme without directories needs none.
                pass
            write(directory + "/first", b"1")
            gfile.remove(directory + "/first")
            return directory
        except Exception as error:
            remove(directory)
            tell({"Refused": [directory, first_line(error)]})
    return None


def remove(directory):
    problem = None
    try:
        gfile.rmtree(directory)
    except tf.errors.NotFoundError:
        pass
    except Exception as error:
        problem = first_line(error)
    # Without directories the files are removed one by one.
    for name in below(directory):
        try:
            gfile.remove("%s/%s" % (directory, name))
        except Exception as error:
            problem = problem or first_line(error)
    if problem is not None:
        try:
            there = gfile.exists(directory) or below(directory)
        except Exception:
            there = True
        if there:
            tell({"Left": [directory, problem]})


def below(directory):
    try:
        names = [name.rstrip("/") for name in gfile.listdir(directory)]
    except Exception:
        return []
    # A plugin that is being written may also list `..`.
    return [name for name in names if not {"", ".", ".."} & set(name.split("/"))]


def filesystem():
    scheme = JOB["scheme"]
    if scheme not in gfile.get_registered_schemes():
        tf.experimental.register_filesystem_plugin(JOB["plugin"])
    own = "file://%s/own" % JOB["reference"]
    if JOB["file"] is not None:
        directory, name = JOB["file"].rsplit("/", 1)
        gfile.mkdir(own)
        # As much as is read; the whole may be larger than the disk.
        with gfile.GFile(JOB["file"], "rb") as source, gfile.GFile("%s/%s" % (own, name), "wb") as target:
            for _ in range(16):
                target.write(source.read(MIB))
    else:
        directory = make_directory()
    if directory is None:
        return "no directory can be made and written to"
    try:
        gfile.makedirs(own)
        filesystem_rows()
        measure_rows(directory, own)
    finally:
        if JOB["file"] is None:
            remove(directory)
        shutil.rmtree(JOB["reference"], ignore_errors=True)
    return None


# Devices: each function gets a device's name.


def has_kernel(op, device):
    try:
        from tensorflow.python.framework import kernels
    except ImportError:
        # Then the op's own error says it.
        return True
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        types = [value for limit in kernel.constraint for value in limit.allowed_values.list.type]
        if kernel.device_type == JOB["device_type"] and (not types or tf.float32.as_datatype_enum in types):
            return True
    return False


def settled(device, operation):
    """As `clock`, until the device has done it all."""

    def run(times):
        start = time.perf_counter_ns()
        with tf.device(device):
            for _ in range(times):
                last = operation()
            # It is behind all that is in the device's queues.
            tf.constant(PROBE).numpy()
        del last
        return time.perf_counter_ns() - start

    return run


PROBE = np.zeros(1, np.float32)


def device_rows():
    for size in (4 * KIB, MIB, 16 * MIB):
        name = "%d KiB" % (size // KIB) if size < MIB else "%d MiB" % (size // MIB)

        @row("Copies", "to the device, %s" % name, size)
        def _(device, size=size):
            array = np.ones(size // 4, np.float32)
            return (settled(device, lambda: tf.constant(array)),)

        @row("Copies", "back to the host, %s" % name, size)
        def _(device, size=size):
            array = np.ones(size // 4, np.float32)

            def run(times):
                # New ones: TensorFlow keeps what it has copied back.
                with tf.device(device):
                    tensors = [tf.constant(array) for _ in range(times)]
                    tf.constant(PROBE).numpy()
                start = time.perf_counter_ns()
                for tensor in tensors:
                    tensor.numpy()
                return time.perf_counter_ns() - start

            run.most = max(1, min(64, 32 * MIB // size))
            return (run,)

    for op, name, shape, function in [
        ("AddV2", "tf.add of 4 floats", (4,), tf.add),
        ("AddV2", "tf.add of 1 Mi floats", (MIB,), tf.add),
        ("MatMul", "tf.matmul of 256 × 256", (256, 256), tf.matmul),
    ]:

        @row("Ops", name)
        def _(device, op=op, shape=shape, function=function):
            if not has_kernel(op, device) and device.split(":")[-2] != "CPU":
                raise Absent("the device has no kernel for %s of floats: TensorFlow runs it on the CPU" % op)
            with tf.device(device):
                a, b = (tf.constant(np.full(shape, value, np.float32)) for value in (0.5, 0.25))
            return (settled(device, lambda: function(a, b)),)


def device():
    found = [device.name for device in tf.config.list_logical_devices(JOB["device_type"])]
    if not found:
        return "TensorFlow %s has no device /device:%s:0" % (tf.__version__, JOB["device_type"])
    # An op that is requested on a device runs there or fails.
    tf.config.set_soft_device_placement(False)
    device_rows()
    measure_rows(found[0], tf.config.list_logical_devices("CPU")[0].name)
    return None
