#!/bin/sh
# SPDX-License-Identifier: MIT
# The defaults that docs/http.md states are those that the headers state, and the options that it names are there.
exec python3 - "$HAFT_SOURCE_DIR" <<'END'
import pathlib, re, sys

source = pathlib.Path(sys.argv[1])
page = (source / 'docs/http.md').read_text(encoding='utf-8')
headers = '\n'.join(path.read_text(encoding='utf-8') for folder in ('http/include/haft', 'http/tls/include/haft', 'io/include/haft')
                    for path in sorted((source / folder).glob('*.h')))
NUMBER = r'([0-9][0-9,]*) ?(KiB|MiB|s\b|)'
UNITS = {'KiB': 1024, 'MiB': 1024 * 1024}


def value_of(number):
    digits, unit = number
    return int(digits.replace(',', '')) * UNITS.get(unit, 1), 's' if unit == 's' else ''


def defaults_of(name):
    """What the comments of fields of this name have in brackets: the one behind it, or the one before."""
    found = []
    for field in re.finditer(rf'(/\*((?!\*/).)*\*/)?\s*\w[\w ]*[ *]{name};([^\n]*?/\*((?!\*/).)*\*/)?', headers, re.DOTALL):
        found += [value_of(number) for number in re.findall(rf'\([^()]*?{NUMBER}', field[0])]
    return found


failed = checked = 0
said = [(name, value_of(number)) for name, *number in re.findall(rf'`\.?([a-z_]+)`[^`|()\n]{{0,20}}\({NUMBER}\)', page)]
in_table = False
for line in page.splitlines():
    cells = line.split(' | ')
    if len(cells) > 1 and cells[1] in ('default', 'default |'):
        in_table = True
    elif not line.startswith('|'):
        in_table = False
    elif in_table and len(cells) > 1 and (number := re.match(NUMBER, cells[1])) is not None:
        name = re.search('`([a-z_]+)`', cells[0])[1]
        said += [] if name.startswith('haft_') else [(name, value_of(number.groups()))]
for name, value in said:
    if value not in defaults_of(name):
        print(f'docs/http.md: `{name}` has {value} by default, but the headers say {defaults_of(name)}')
        failed += 1
for name in set(re.findall(r'`\.([a-z_]+)[` =]', page)):
    if re.search(rf'[ *]{name}(\[[^;]*)?;|\(\*{name}\)\(', headers) is None:
        print(f'docs/http.md: no option is called {name}')
        failed += 1
print(f'{len(said)} defaults')
sys.exit(failed > 0 or len(said) < 20)
END
