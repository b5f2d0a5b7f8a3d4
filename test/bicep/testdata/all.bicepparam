// What can be switched on, and no right to assign roles.
using '../../../deploy/azure/main.bicep'

param sysName = 'Two_b'
param location = 'northeurope'
param mode = 'shadow'
param leasePrefix = 'Two_b-shadow-'
param cosmosDatabase = 'two'
param cosmosContainer = 'results'
param leaseContainer = 'leases'
param partitionKeyPaths = ['/tenant', '/request_details/id']
param sqlAdmin = { name: 'DBAs', objectId: '00000000-0000-4000-8000-000000000007', type: 'Group' }
param sqlDatabase = 'rows'
param sqlSchema = 'ai'
param sqlSku = { name: 'S3', tier: 'Standard' }
param sqlMaxOpen = 9
param mapping = 'mapping.json'
// The first counts: the others stand in the template.
param settings = { TIME_ZONE: 'Europe/Berlin', SQL_MAX_OPEN: '5', MODE: 'live', LEASE_PREFIX: 'Two_b-' }
param maximumInstances = 100
param instanceMemoryMB = 512
param subnetId = '/subscriptions/SUBSCRIPTION/subnets/app'
param signInClientId = '00000000-0000-4000-8000-000000000008'
param alertEmail = 'us@example.com'
param assignRoles = false
param locks = true
