"""Updates a store day by day through a real log, beside other ways of keeping up.

  python experiments/soak.py --log=tafeng.csv.gz --history=61d --updates=30 --every=1d --kd=sgct --sane

The same as the command `graphsane soak`.
"""
from graphsane_tf.commands.main import start

if __name__ == '__main__':
  start('soak')
