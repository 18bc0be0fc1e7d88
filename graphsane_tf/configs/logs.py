"""Recipes of logs that `experiments/reproduce.py --datasets=name=PATH` takes from the user's disk.

Each is a dict of data flags. A name that is not listed is read without filters.
"""
RECIPES = {
    # Check-ins of the SNAP Gowalla log, one row a (user, place) pair.
    'gowalla': {'min_user_interactions': 10, 'min_item_interactions': 10},
    # Ta-Feng grocery purchases with product subclasses as categories.
    'tafeng': {'min_user_interactions': 10, 'min_item_interactions': 10},
    # MovieLens 1M; implicit feedback is a rating above 3.
    'ml1m': {'min_user_interactions': 10, 'min_item_interactions': 10, 'min_rating': 4},
    # Taobao favourites: very sparse.
    'taobao_fav': {'min_user_interactions': 3, 'min_item_interactions': 3},
}
