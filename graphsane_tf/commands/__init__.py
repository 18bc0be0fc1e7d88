"""The commands of `graphsane`: one module each, with HELP, EXAMPLES, define() and main()."""

# Name to module and what it is for.
COMMANDS = {
    'run': ('run', 'train, test and export a log block by block'),
    'init': ('init', 'make a store of model versions from a history'),
    'update': ('update', "the next version of a store, from today's rows"),
    'status': ('status', 'what a store holds'),
    'recommend': ('recommend', 'ask the current version of a store'),
    'serve': ('serve', 'serve a store over HTTP'),
    'report': ('report', "an HTML page of a store's life"),
    'rollback': ('rollback', 'publish an older version again'),
    'prune': ('prune', 'delete old versions of a store'),
    'export': ('export', "a store's vectors and ids, for other software"),
    'soak': ('soak', 'update a store day by day through a log, and measure it'),
    'prepare': ('prepare', 'read and filter a data set, and show its counts'),
    'reproduce': ('reproduce', "the paper's tables and figures, and our own"),
    'compare': ('compare', 'test finished runs against each other'),
    'tune': ('tune', "choose SANE's values for a log on validation rows"),
    'inspect': ('inspect', "one user's interests and negative reservoir"),
    'audit': ('audit', "a run under the released protocol's choices"),
    'plan': ('plan', 'what a block of some size will cost, for 1 to 64 workers'),
    'benchmark': ('benchmark', 'measure speed and memory'),
    'doctor': ('doctor', 'what this machine has, and what would not work'),
}
