// As the first deployment writes it, with a server and an account of its own.
using '../../../deploy/azure/main.bicep'

param sysName = 'web'
param location = 'westeurope'
param mode = 'live'
param leasePrefix = 'web-'
param sqlAdmin = { name: 'ann@example.com', objectId: '00000000-0000-4000-8000-000000000006', type: 'User' }
param dataContributors = ['00000000-0000-4000-8000-000000000006']
