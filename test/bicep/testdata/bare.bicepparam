// Only what has a default: a server that is there keeps its administrator.
using '../../../deploy/azure/main.bicep'
