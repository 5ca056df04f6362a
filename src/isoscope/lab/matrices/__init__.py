"""How isotropic the embedding matrices of a model are."""
