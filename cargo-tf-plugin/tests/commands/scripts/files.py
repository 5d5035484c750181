import os, sys, threading
import tensorflow as tf
file_io = tf.io.gfile
file_io.makedirs('mem://data/of')
with file_io.GFile('mem://data/of/one', 'w') as file:
    file.write('a very secret text')
print(tf.io.read_file('mem://data/of/one').numpy().decode())
print(file_io.listdir('mem://data/of'), file_io.exists('mem://data/none'))
try:
    file_io.stat('mem://data/none')
except tf.errors.NotFoundError as error:
    print(error)
def other():
    for _ in range(50):
        file_io.exists('mem://data/of/one')
threads = [threading.Thread(target=other) for _ in range(4)]
for thread in threads: thread.start()
child = os.fork()
if child == 0:
    found = file_io.exists('mem://data/of')
    os._exit(5 if found else 6)
for thread in threads: thread.join()
print('child:', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.stdout.flush()
