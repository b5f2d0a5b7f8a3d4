// The Cosmos DB account and the SQL database belong to others: copy this file, and write their names into it.
// It begins as a shadow, which writes nothing (docs/cutover.md).
using 'main.bicep'

param sysName = 'web'
param mode = 'shadow'
param leasePrefix = 'web-shadow-'

param cosmosEndpoint = 'https://NAME.documents.azure.com:443/'
param cosmosDatabase = 'invoices'
param cosmosContainer = 'AI_PROCESS_LOGS'

param sqlServer = 'NAME.database.windows.net'
param sqlDatabase = 'invoices'
param sqlSchema = 'dbo'
