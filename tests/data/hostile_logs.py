"""Small logs that are strange or broken, each with the rows or the words that must come of it.

A case is (file name, content, outcome): the content is bytes, or a function that writes the path; the
outcome is a list of (user, item, seconds), or a tuple of words of the one sentence.
"""
import gzip
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1714566600  # 2024-05-01T12:30:00Z
ROWS = [(f'u{row % 5}', f'i{row % 6}', START + 3600 * row) for row in range(30)]
DAYS = [(user, item, 1440547200 + 86400 * row) for row, (user, item, _) in enumerate(ROWS)]
HEADER = 'user,item,timestamp'


def log(rows=None, extra='', header=HEADER, delimiter=',', newline='\n') -> bytes:
  """A log of `rows` (default: ROWS) and then the lines of `extra`."""
  lines = [header, *(delimiter.join(map(str, row)) for row in rows or ROWS)]
  content = newline.join(lines) + newline
  return content.encode('utf-8') + (extra if isinstance(extra, bytes) else extra.encode('utf-8'))


def timed(times):
  """ROWS with other times, as they stand in the file."""
  return [(user, item, time) for (user, item, _), time in zip(ROWS, times)]


def parquet(**columns):
  """A function that writes a Parquet file of ROWS, with some columns replaced or added."""
  plain = {'user': [row[0] for row in ROWS], 'item': [row[1] for row in ROWS],
           'timestamp': [row[2] for row in ROWS]}

  def write(path):
    pq.write_table(pa.table({**plain, **columns}), path)

  return write


def repeated(value, kind=None):
  return pa.array([value] * len(ROWS), kind)


def broken_text():
  """A text column with a byte that is not UTF-8."""
  column = pa.array([b'c\xff'] * len(ROWS), pa.binary())
  return pa.Array.from_buffers(pa.string(), len(ROWS), column.buffers())


def link_to_itself(path):
  os.symlink(path.name, path)


SECONDS = [row[2] for row in ROWS]
STAMPS = np.array(SECONDS).astype('datetime64[s]').astype(str)
ISO_DAYS = [str(np.datetime64(row[2], 's').astype('datetime64[D]')) for row in DAYS]
NUMBER_DAYS = [day.replace('-', '') for day in ISO_DAYS]

READ = {
    'byte order mark': ('log.csv', b'\xef\xbb\xbf' + log(), ROWS),
    'windows line ends': ('log.csv', log(newline='\r\n'), ROWS),
    'windows, mark, gzip': ('log.csv.gz', gzip.compress(b'\xef\xbb\xbf' + log(newline='\r\n')), ROWS),
    'no newline at the end': ('log.csv', log().rstrip(b'\n'), ROWS),
    'blank lines': ('log.csv', log().replace(b'\n', b'\n\n\r\n'), ROWS),
    'one lone carriage return': ('log.csv', log()[::-1].replace(b'\n', b'\r', 2)[::-1] + b'\n', ROWS),
    'quotes around everything': ('log.csv', b'"' + log().strip().replace(b',', b'","').replace(
        b'\n', b'"\n"') + b'"\n', ROWS),
    'inch marks': ('log.csv', log([(*row, '5" pipe') for row in ROWS], header=HEADER + ',note'), ROWS),
    'ids with delimiter and quote': ('log.csv', log([(f'"{user}, ""x"""', item, time)
                                                     for user, item, time in ROWS]),
                                     [(f'{user}, "x"', item, time) for user, item, time in ROWS]),
    'unicode ids': ('log.csv', log([(f'{user}é😀‏א', item, time) for user, item, time in ROWS]),
                    [(f'{user}é😀‏א', item, time) for user, item, time in ROWS]),
    'unicode column': ('log.csv', log(header='user,item,timestamp,größe,標題',
                                      rows=[(*row, 1, 2) for row in ROWS]), ROWS),
    'spaces around ids': ('log.csv', log([(f' {user} ', item, time) for user, item, time in ROWS]),
                          [(f' {user} ', item, time) for user, item, time in ROWS]),
    'spaces after commas': ('log.csv', log(header='user, item, timestamp', delimiter=', '),
                            [(user, f' {item}', time) for user, item, time in ROWS]),
    'zero bytes in ids': ('log.csv', log([(f'{user}\0', item, time) for user, item, time in ROWS]),
                          [(f'{user}\0', item, time) for user, item, time in ROWS]),
    'leading zeros': ('log.csv', log([(f'00{user[1:]}', item, time) for user, item, time in ROWS]),
                      [(f'00{user[1:]}', item, time) for user, item, time in ROWS]),
    'ids beyond 64 bits': ('log.csv', log([(f'{10**30}{user[1:]}', item, t) for user, item, t in ROWS]),
                           [(f'{10**30}{user[1:]}', item, time) for user, item, time in ROWS]),
    'ids of 40,000 letters': ('log.csv', log([(user * 20_000, item, time) for user, item, time in ROWS]),
                          [(user * 20_000, item, time) for user, item, time in ROWS]),
    'repeated rows': ('log.csv', log(ROWS + ROWS), ROWS),
    'newest first': ('log.csv', log(ROWS[::-1]), ROWS),
    'other columns and order': ('log.csv', log([(time, 1, item, 'x', user) for user, item, time in ROWS],
                                               header='timestamp,a,item_id,b,user_id'), ROWS),
    'empty columns': ('log.csv', log([(*row, '', '') for row in ROWS], header=HEADER + ',,'), ROWS),
    'two thousand columns': ('log.csv', log([(*row, *range(2000)) for row in ROWS], header=','.join(
        [HEADER, *(f'c{number}' for number in range(2000))])), ROWS),
    'semicolons': ('log.csv', log(header='user;item;timestamp', delimiter=';'), ROWS),
    'semicolons in quotes': ('log.csv', log(header='user,item,timestamp,"a;user;item"',
                                            rows=[(*row, '1;2;3') for row in ROWS]), ROWS),
    'more semicolons than commas': ('log.csv', log(header='user,item,timestamp,a;b;c;d;e',
                                                   rows=[(*row, 1) for row in ROWS]), ROWS),
    'tabs in .csv': ('log.csv', log(header='user\titem\ttimestamp', delimiter='\t'), ROWS),
    'bars': ('log.csv.gz', gzip.compress(log(header='user|item|timestamp', delimiter='|')), ROWS),
    'commas in .tsv': ('log.tsv', log(), ROWS),
    'semicolons in .inter': ('log.inter', log(header='user_id:token;item_id:token;timestamp:float',
                                              delimiter=';'), ROWS),
    'gzip without .gz': ('log.csv', gzip.compress(log()), ROWS),
    'gzip in many parts': ('log.csv.gz', b''.join(gzip.compress(log()[at:at + 7]) for at in range(
        0, len(log()), 7)), ROWS),
    'gzip with zeros behind': ('log.csv.gz', gzip.compress(log()) + b'\0' * 512, ROWS),
    'capital ending': ('LOG.CSV', log(), ROWS),
    'milliseconds': ('log.csv', log(timed(f'{time}999' for time in SECONDS)), ROWS),
    'microseconds': ('log.csv', log(timed(f'{time}999999' for time in SECONDS)), ROWS),
    'nanoseconds': ('log.csv', log(timed(f'{time}999999999' for time in SECONDS)), ROWS),
    'fractions of seconds': ('log.csv', log(timed(f'{time}.75' for time in SECONDS)), ROWS),
    'powers of ten': ('log.csv', log(timed(f'{time / 1e9:.9f}E9' for time in SECONDS)), ROWS),
    'times before 1970': ('log.csv', log(timed(range(-50, -20))), timed(range(-50, -20))),
    'row numbers': ('log.csv', log(timed(range(30))), timed(range(30))),
    'days as numbers': ('log.csv', log(timed(NUMBER_DAYS)), DAYS),
    'minutes as numbers': ('log.csv', log(timed(f'{day}0000' for day in NUMBER_DAYS)), DAYS),
    'seconds as numbers': ('log.csv', log(timed(f'{day}000000' for day in NUMBER_DAYS)), DAYS),
    'numbers that are few dates': ('log.csv', log(timed(range(20150861, 20151161, 10))),
                                   timed(range(20150861, 20151161, 10))),
    'ISO days': ('log.csv', log(timed(ISO_DAYS)), DAYS),
    'ISO with a zone': ('log.csv', log(timed(f'{stamp}+00:00' for stamp in STAMPS)), ROWS),
    'ISO among seconds': ('log.csv', log([*ROWS[:29], (*ROWS[29][:2], f'{STAMPS[29]}Z')]), ROWS),
    'days among ISO days': ('log.csv', log(timed([*ISO_DAYS[:29], NUMBER_DAYS[29]])), DAYS),
    'parquet of large text': ('log.parquet', parquet(
        user=pa.array([row[0] for row in ROWS], pa.large_string())), ROWS),
    'parquet of dictionaries': ('log.parquet', parquet(
        item=pa.array([row[1] for row in ROWS]).dictionary_encode()), ROWS),
    'parquet of nanosecond times': ('log.parquet', parquet(
        timestamp=pa.array(SECONDS, pa.timestamp('s')).cast(pa.timestamp('ns'))), ROWS),
    'parquet of nanosecond numbers': ('log.parquet', parquet(
        timestamp=[time * 10**9 + 999_999_999 for time in SECONDS]), ROWS),
    'parquet of unsigned times': ('log.parquet', parquet(
        timestamp=pa.array(SECONDS, pa.uint64())), ROWS),
    'parquet of dates': ('log.parquet', parquet(
        timestamp=pa.array([row[2] // 86400 for row in DAYS], pa.date32())), DAYS),
    'parquet of day numbers': ('log.parquet', parquet(
        timestamp=[int(day) for day in NUMBER_DAYS]), DAYS),
    'parquet with empty categories': ('log.parquet', parquet(category=repeated(None)), ROWS),
    'parquet with nested columns': ('log.parquet', parquet(basket=repeated([1, 2])), ROWS),
    'parquet with dots in names': ('log.parquet', parquet(**{'user.name': repeated('x')}), ROWS),
}

REFUSED = {
    'empty': ('log.csv', b'', ('is empty',)),
    'empty gzip': ('log.csv.gz', gzip.compress(b''), ('is empty',)),
    'nothing in .gz': ('log.csv.gz', b'', ('is empty',)),
    'only a mark': ('log.csv', b'\xef\xbb\xbf', ('is empty',)),
    'only newlines': ('log.csv', b'\n\n\n', ('no column user',)),
    'header alone': ('log.csv', (HEADER + '\n').encode(), ('no rows',)),
    'header without newline': ('log.csv.gz', gzip.compress(HEADER.encode()), ('no rows',)),
    'no header': ('log.csv', log()[len(HEADER) + 1:], ('no column user', f'found: {ROWS[0][0]}')),
    'capital header': ('log.csv', log(header='User,Item,Timestamp'), ('no column user', 'found: User')),
    'header of control characters': ('log.csv', b'\x1b[31muser\x07,item\n1,2\n', ('?[31muser?, item',)),
    'endless header': ('log.csv', b'x' * 200_000 + b'\n1\n', ('line 1', 'header')),
    'wide header': ('log.csv', b'x,' * 200_000 + b'\n1\n', ('no column user', ' ...')),
    'doubled header': ('log.csv', log(header=HEADER + ',user'), ('user occurs more than once',)),
    'missing user': ('log.csv', log(extra=f',i1,{START}\n'), ('line 32, column user', 'missing')),
    'NaN for an item': ('log.csv', log(extra=f'u1,NaN,{START}\n'), ('line 32, column item', 'missing')),
    'spaces for an item': ('log.csv', log(extra=f'u1,  ,{START}\n'),
                           ('line 32, column item', 'missing')),
    'missing time': ('log.csv', log(extra='u1,i1,\n'), ('line 32, column timestamp',)),
    'NaN time': ('log.csv', log(extra='u1,i1,nan\n'), ('line 32, column timestamp', "'nan'")),
    'infinite time': ('log.csv', log(extra='u1,i1,-inf\n'), ('line 32, column timestamp', "'-inf'")),
    'NaT': ('log.csv', log(timed(['NaT', *STAMPS[1:]])), ('line 2, column timestamp', "'NaT'")),
    'word for a time': ('log.csv', log(extra='u1,i1,soon\n'), ('line 32, column timestamp', "'soon'")),
    'now': ('log.csv', log(extra='u1,i1,now\n'), ('line 32, column timestamp', "'now'")),
    'today among ISO': ('log.csv', log(timed([*STAMPS[:-1], 'today'])), ('line 31', "'today'")),
    'truth for a time': ('log.csv', log(extra='u1,i1,true\n'), ('line 32, column timestamp', "'true'")),
    'hexadecimal time': ('log.csv', log(extra='u1,i1,0x5F\n'), ('line 32', "'0x5F'")),
    'time of day': ('log.csv', log(timed(['12:30'] * 30)), ('line 2, column timestamp', "'12:30'")),
    'time of 25 digits': ('log.csv', log(extra=f'u1,i1,{10**25}\n'), ('line 32, column timestamp',)),
    'time beyond floats': ('log.csv', log(extra='u1,i1,1e400\n'), ('line 32, column timestamp',)),
    '30 February': ('log.csv', log(extra='u1,i1,2024-02-30\n'), ('line 32', "'2024-02-30'")),
    'American dates': ('log.csv', log(timed(['05/26/2015'] * 30)), ('line 2', "'05/26/2015'")),
    'one time in milliseconds': ('log.csv', log(extra=f'u1,i1,{START}000\n'),
                                 ('line 32, column timestamp', '1 of 31', 'epoch seconds')),
    'zeros among milliseconds': ('log.csv', log(timed([0, 0, *(f'{time}000' for time in SECONDS[2:])])),
                                 ('line 2, column timestamp', '2 of 30', 'epoch milliseconds')),
    'micro- among milliseconds': ('log.csv', log(timed([*(f'{time}000' for time in SECONDS[:29]),
                                                        f'{START}000000'])),
                                  ('line 31, column timestamp', '1 of 30')),
    'dates among seconds': ('log.csv', log([*ROWS[:20], *timed([20150826] * 30)[20:]]),
                            ('line 22, column timestamp', '10 of 30', 'epoch seconds', '20150826')),
    'seconds among dates': ('log.csv', log(timed([*NUMBER_DAYS[:29], START])),
                            ('line 31, column timestamp', '1 of 30', 'dates such as 20150826')),
    'no day among dates': ('log.csv', log(timed([*NUMBER_DAYS[:29], 20150832])),
                           ('line 31, column timestamp', '1 of 30', '20150832')),
    'all times equal': ('log.csv', log(timed([START] * 30)), ('all 30 rows', '2024-05-01T12:30:00',
                                                              '--timestamp_column')),
    'all times zero': ('log.parquet', parquet(timestamp=repeated(0)), ('all 30 rows', '1970-01-01')),
    'a value too few': ('log.csv', log(extra='u1,i1\n'), ('line 32', '2 values instead of 3')),
    'a value too many': ('log.csv', log(extra='u1,i1,5,6\n'), ('line 32', '4 values instead of 3')),
    'comma in a number': ('log.csv', log(extra='u1,i1,"1,714"\n'), ('line 32', "'1,714'")),
    'open quote': ('log.csv', log(extra='"u1,i1,5\nu2,i2,6\n'), ('line 32', '1 values instead of 3')),
    'open quote in the last column': (
        'log.csv', log([(*row, '"27 inch' if row == ROWS[3] else 'x') for row in ROWS],
                       header=HEADER + ',note'), ('line 5', 'quote', 'not closed')),
    'open quote in the last line': ('log.csv', log([(*row, 'x') for row in ROWS[:-1]], 'u1,i1,5,"x\n',
                                                   header=HEADER + ',note'), ('line 31', 'not closed')),
    'broken UTF-8': ('log.csv', log(extra=b'u\xff,i1,5\n'), ('line 32, column user', 'UTF-8')),
    'surrogate': ('log.csv', log(extra=b'u\xed\xa0\x80,i1,5\n'), ('line 32, column user', 'UTF-8')),
    'latin-1 header': ('log.csv', log().replace(b'item', b'\xe4rtikel', 1), ('line 1', 'UTF-8')),
    'UTF-16': ('log.csv', log().decode().encode('utf-16'), ('line 1', 'UTF-16')),
    'UTF-16 without mark': ('log.csv', log().decode().encode('utf-16-le'), ('line 1', 'UTF-16')),
    'zero bytes': ('log.csv', b'\0' * 4096, ('line 1', 'zero bytes')),
    'line ends of old Macs': ('log.csv', log(newline='\r'), ('line 1', 'carriage return')),
    'gzip cut short': ('log.csv.gz', gzip.compress(log())[:-20], ('damaged or truncated gzip',)),
    'gzip without its end': ('log.csv.gz', gzip.compress(log())[:-4], ('damaged or truncated gzip',)),
    'gzip with a flipped bit': ('log.csv.gz', bytearray(gzip.compress(log())[:-8]) + b'\1' * 8,
                                ('damaged or truncated gzip',)),
    'gzip with text behind': ('log.csv.gz', gzip.compress(log()) + b'more', ('damaged',)),
    'text called .gz': ('log.csv.gz', log(), ('no gzip file', 'take .gz off')),
    'Parquet called .csv': ('log.csv', b'PAR1 and so on', ('Parquet', 'ending .parquet')),
    'Excel called .csv': ('log.csv', b'PK\x03\x04 and so on', ('Excel',)),
    'CSV called .parquet': ('log.parquet', log(), ('not a readable Parquet file',)),
    'text called .txt': ('log.txt', log(), ('unknown ending', '.csv')),
    'short Parquet': ('log.parquet', b'PAR1', ('not a readable Parquet file',)),
    'Parquet without rows': ('log.parquet', lambda path: pq.write_table(pa.table(
        {'user': ['a'], 'item': ['b'], 'timestamp': [1]}).slice(0, 0), path), ('no rows',)),
    'Parquet with lists as users': ('log.parquet', parquet(user=repeated(['a'])),
                                    ('column user', 'list')),
    'Parquet with structs as times': ('log.parquet', parquet(timestamp=repeated({'s': 1})),
                                      ('column timestamp', 'struct')),
    'Parquet with lists as ratings': ('log.parquet', parquet(rating=repeated([1.])),
                                      ('column rating', 'list')),
    'Parquet with structs as categories': ('log.parquet', parquet(category=repeated({'a': 1})),
                                           ('column category', 'struct')),
    'Parquet with times as ratings': ('log.parquet', parquet(rating=repeated(5, pa.timestamp('s'))),
                                      ('column rating', 'timestamp')),
    'Parquet with fractions as users': ('log.parquet', parquet(user=repeated(1.5)),
                                        ('column user', 'double')),
    'Parquet with bytes as items': ('log.parquet', parquet(item=repeated(b'x')),
                                    ('column item', 'binary')),
    'Parquet without users': ('log.parquet', parquet(user=repeated(None)), ('column user', 'null')),
    'Parquet without one user': ('log.parquet', parquet(user=['a'] * 29 + [None]),
                                 ('row 30, column user', 'missing')),
    'Parquet without one time': ('log.parquet', parquet(timestamp=[*SECONDS[:29], None]),
                                 ('row 30, column timestamp',)),
    'Parquet with truths as times': ('log.parquet', parquet(timestamp=repeated(True)),
                                     ('column timestamp', 'bool')),
    'Parquet with times of day': ('log.parquet', parquet(timestamp=repeated(5, pa.time32('s'))),
                                  ('column timestamp', 'time32')),
    'Parquet with durations': ('log.parquet', parquet(timestamp=repeated(5, pa.duration('s'))),
                               ('column timestamp', 'duration')),
    'Parquet with units mixed': ('log.parquet', parquet(timestamp=[*SECONDS[:29], START * 1000]),
                                 ('row 30, column timestamp', '1 of 30')),
    'Parquet with times beyond 63 bits': ('log.parquet', parquet(
        timestamp=pa.array([2**64 - 1] * 30, pa.uint64())), ('row 1, column timestamp',)),
    'Parquet with broken UTF-8': ('log.parquet', parquet(category=broken_text()), ('Parquet',)),
    'word for a rating': ('log.csv', log([(*row, 4) for row in ROWS], 'u1,i1,5,good\n',
                                         header=HEADER + ',rating'),
                          ('line 32, column rating', "'good'")),
    'one user': ('log.csv', log([('a', f'i{row}', row) for row in range(30)]), ('only one user',)),
    'one item': ('log.csv', log([(f'u{row}', 'x', row) for row in range(30)]), ('only one item',)),
    'one row over and over': ('log.csv', log([ROWS[0]] * 1000), ('csv has only',)),
    'folder': ('log.csv', lambda path: path.mkdir(), ('is a folder',)),
    'pipe': ('log.csv', os.mkfifo, ('is a pipe',)),
    'nothing': ('log.csv', lambda path: None, ('does not exist',)),
    'link to itself': ('log.csv', link_to_itself, ('cannot read',)),
    'link to nothing': ('log.csv', lambda path: os.symlink('gone.csv', path), ('does not exist',)),
    'name too long': ('x' * 300 + '.csv', lambda path: None, ('cannot read',)),
}
