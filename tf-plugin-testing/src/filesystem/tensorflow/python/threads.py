# Threads ------------------------------------------------------------------------------------------------------


def in_threads(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for _ in pool.map(work, range(count)):
            pass


@case
def python_threads_read_one_file(place):
    data = write(place("file"), payload(1 << 20)) and payload(1 << 20)

    def work(thread):
        with gfile.GFile(place("file"), "rb") as file:
            for step in range(20):
                offset = (thread * 7919 + step * 104729) % len(data)
                file.seek(offset)
                same("a piece", file.read(5000), data[offset:offset + 5000])

    in_threads(8, work)


@case
def python_threads_with_files_of_their_own(place):
    def work(thread):
        own = place("file-%d" % thread)
        for step in range(8):
            data = payload(1000 * step + thread, thread)
            write(own, data)
            same("the thread's file", read(own), data)
            gfile.rename(own, own + ".moved")
            gfile.copy(own + ".moved", own)
            gfile.remove(own + ".moved")
            holds("the thread's file is listed", "file-%d" % thread in gfile.listdir(place()))

    in_threads(8, work)
    same("listdir", names(gfile.listdir(place())), ["file-%d" % thread for thread in range(8)])


@case
def python_threads_rename_onto_one_file(place):
    contents = [bytes([65 + thread]) * 50000 for thread in range(8)]

    def work(thread):
        for step in range(6):
            temporary = place("temporary-%d-%d" % (thread, step))
            write(temporary, contents[thread])
            gfile.rename(temporary, place("target"), overwrite=True)

    in_threads(8, work)
    holds("the target is one of the files, not a mixture", read(place("target")) in contents)
    same("listdir", names(gfile.listdir(place())), ["target"])


@case
def python_threads_make_one_tree(place):
    in_threads(8, lambda thread: gfile.makedirs(place("a", "b", "c", "of-%d" % thread)))
    same("listdir", names(gfile.listdir(place("a", "b", "c"))), ["of-%d" % thread for thread in range(8)])
